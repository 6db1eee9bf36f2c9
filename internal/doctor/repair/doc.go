// Package repair makes a store from what is left of a damaged one, and says what was
// lost.
//
// Whole tables are kept as they are. Of a damaged one every block that checks out is
// written to a new table; of the logs every record that checks out goes into a table of
// level 0. If the manifest can be trusted, tables stay in their levels: what is missing
// from a level does not disturb the order of the others. Otherwise sequence numbers tell
// which table is newer. That works for two tables only if their sequence numbers do not
// interleave. Tables with overlapping keys and sequence numbers are merged into one run
// first (place.go).
//
// The input is never destroyed. New files have new numbers, and the new manifest takes
// effect in one step. Originals that it does not list are moved to the directory lost. Or
// everything goes to another directory and the original stays untouched. An interrupted
// repair can be run again.
package repair
