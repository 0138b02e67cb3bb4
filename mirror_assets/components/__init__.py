"""The component `MirrorComponent`, for `dg scaffold defs mirror_assets.MirrorComponent` and defs.yaml."""
