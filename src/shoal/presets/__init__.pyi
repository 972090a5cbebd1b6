from shoal.presets.preset import (
    PAPERS as PAPERS,
    Preset as Preset,
    find_preset as find_preset,
    presets as presets,
)
