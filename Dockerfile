# docker build -t codesign-bench .
# docker run --rm -v "$PWD/results:/codesign_bench/results" codesign-bench bench ENV=gap
# Add -v "$PWD/figures:/codesign_bench/figures" to keep what figures and report draw.
# The entry is make: any of its targets and variables may follow. Pictures are drawn by EGL, or by OSMesa where there is none.
FROM python:3.11-slim-bookworm

RUN apt-get update \
 && apt-get install --yes --no-install-recommends git make libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libosmesa6 \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /codesign_bench
COPY . .
RUN make setup

VOLUME /codesign_bench/results
ENTRYPOINT ["make"]
CMD ["bench", "ENV=gap"]
