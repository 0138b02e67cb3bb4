"""mirror.yaml as a typed model; every error names the line to correct."""

from mirror_assets.config.automation import Mode
from mirror_assets.config.discover_rule import DiscoverRule
from mirror_assets.config.discovered import FoundState, RuleOutcome
from mirror_assets.config.errors import ConfigInvalid, ConfigMissing, Problem, TableUnknown
from mirror_assets.config.find_tables import When, with_found_tables
from mirror_assets.config.load import CONFIG_VARIABLE, config_file, load_config, load_fabric
from mirror_assets.config.model import Config
from mirror_assets.config.places import (
    FabricConfig,
    LandingZoneConfig,
    OneLakeConfig,
    Staging,
)
from mirror_assets.config.setting_values import Changes, Compression, HistoryMode, OnBreak, OnDropColumn
from mirror_assets.config.source_fit import alike_columns, missing_columns, setting_of, source_problems, why_no_key
from mirror_assets.config.table_settings import (
    DirectLakeMode,
    DirectLakeSettings,
    FramesOf,
    HistoryStart,
    LagLimits,
    Maintenance,
    RetentionLimits,
    Start,
    TableConfig,
    TableDefaults,
    TableSettings,
)
from mirror_assets.config.variables import fill_sql
from mirror_assets.config.zone import open_zone

__all__ = [
    "CONFIG_VARIABLE",
    "Changes",
    "Compression",
    "Config",
    "ConfigInvalid",
    "ConfigMissing",
    "DirectLakeMode",
    "DirectLakeSettings",
    "DiscoverRule",
    "FabricConfig",
    "FoundState",
    "FramesOf",
    "HistoryMode",
    "HistoryStart",
    "LagLimits",
    "LandingZoneConfig",
    "Maintenance",
    "Mode",
    "OnBreak",
    "OnDropColumn",
    "OneLakeConfig",
    "Problem",
    "RetentionLimits",
    "RuleOutcome",
    "Staging",
    "Start",
    "TableConfig",
    "TableDefaults",
    "TableSettings",
    "TableUnknown",
    "When",
    "alike_columns",
    "config_file",
    "fill_sql",
    "load_config",
    "load_fabric",
    "missing_columns",
    "open_zone",
    "setting_of",
    "source_problems",
    "why_no_key",
    "with_found_tables",
]
