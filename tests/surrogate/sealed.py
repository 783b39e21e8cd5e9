"""Manifests that were changed on purpose, with a checksum that fits again."""

import json

from twoscale.files import content_digest


def edit_manifest(folder, change):
    """Change a manifest as somebody would who knows how it is sealed."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    manifest["checksum"] = content_digest(manifest, but="checksum")
    path.write_text(json.dumps(manifest))
