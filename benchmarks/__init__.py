"""Speed as ratios, measured side by side in one run; never a test, for a figure is only good for its machine."""
