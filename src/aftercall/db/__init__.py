"""The database: connecting, tables, migrations."""
