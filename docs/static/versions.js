// The site alone; docs/versions.py writes the list where other versions lie beside it.
const CERTREE_VERSIONS = [];
