// Package pebblev1filter is package pebblefilter for Pebble's first major version
// (github.com/cockroachdb/pebble, v1.1.5), whose import path differs. What is said
// there holds here; a table that one version wrote with a filter of this module,
// the other reads with it.
package pebblev1filter
