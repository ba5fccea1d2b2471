/* Search from disk. A page that is opened as a file may start no worker, so here a hidden frame does a worker's work. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.title = "search"
      document.documentElement.append(this.frame)
      const inside = (this.inside = this.frame.contentWindow)
      const load = url =>
        new Promise((resolve, reject) => {
          const script = inside.document.createElement("script")
          Object.assign(script, { src: new URL(url, address), onload: resolve, onerror: reject })
          inside.document.body.append(script)
        })
      inside.postMessage = data => this.say(new MessageEvent("message", { data: structuredClone(data) }))
      inside.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => load(url)), Promise.resolve())
      address = new URL(address, location.href)
      this.ready = load(address)
      this.ready.catch(() => this.say(new ErrorEvent("error", { message: `${address} could not be loaded` })))
    }

    /* Later, as messages of a worker come. They are copies, as a worker's are: who gets one may change it. */
    say(event) {
      setTimeout(() => {
        this.dispatchEvent(event)
        this[`on${event.type}`]?.(event)
      })
    }

    postMessage(data) {
      const event = new this.inside.MessageEvent("message", { data: structuredClone(data) })
      this.ready.then(() => setTimeout(() => this.inside.dispatchEvent(event)))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
