// Leads to the other versions of the site that lie beside this one, as versions.js lists them.
document.addEventListener("DOMContentLoaded", () => {
  const here = document.documentElement.dataset.content_root;
  const shown = DOCUMENTATION_OPTIONS.VERSION;
  for (const list of document.querySelectorAll("select.certree-versions")) {
    for (const version of CERTREE_VERSIONS) {
      list.add(new Option(version, version, version === shown, version === shown));
    }
    list.hidden = CERTREE_VERSIONS.length < 2;
    list.addEventListener("change", () => {
      location.href = `${here}../${list.value}/index.html`;
    });
  }
});
