setUpSorting();
setUpCopying();
setUpVideos();
Curves.build();
Designs.build();
Lineage.build();
setUpTheme();
document.documentElement.dataset.ready = "yes";
