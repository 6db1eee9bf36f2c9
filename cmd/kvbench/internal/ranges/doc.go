// Package ranges measures range filters on their own: what they cost to build and to ask, how
// much space they take, and how many empty ranges they let pass, by the kind of keys, the
// width of the range and how near behind a key it begins.
package ranges
