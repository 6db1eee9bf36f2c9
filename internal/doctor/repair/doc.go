// Package repair makes a store of what is left of a damaged one, and says what was
// lost.
//
// Whole tables are kept as they are. Of a damaged one every block that checks out is
// written to a new table; of the logs every record that checks out goes into a table
// of level 0. Where the manifest can be trusted, tables stay in their levels: what is
// missing from a level does not disturb the order of the others. Where it cannot,
// which table is newer is read off the sequence numbers, which is possible between two
// tables only if their sequence numbers do not interleave; those of which keys and
// sequence numbers overlap are merged into one run first (place.go).
//
// The input is never destroyed. New files have new numbers, the new manifest is put in
// force in one step, and originals that it does not list are moved to the directory
// lost; or everything goes to another directory and the original stays untouched. A
// repair that is interrupted can be run again.
package repair
