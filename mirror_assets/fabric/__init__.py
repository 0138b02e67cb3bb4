"""Microsoft Fabric's side: a mirrored database made, started and asked through Fabric's REST interface."""
