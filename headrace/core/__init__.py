"""The laws' nouns: errors, origin, position, time, schema, aggregates. Imports no other room."""
