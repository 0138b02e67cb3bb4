"""What the seed's page on Direct Lake's storage makes one ask of a table, answered from its log and footers."""
