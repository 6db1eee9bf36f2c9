// Package keys provides the keys of an experiment: those a store is loaded
// with (present), those it is asked for in vain (absent), and the value of each.
//
// An absent key that lies outside the bounds of every file costs any engine
// next to nothing, and would say nothing about filters. So absent keys come
// from the same distribution as present ones and lie between them. Those of a lookup
// trace are what an application asked for, wherever they lie.
//
// Everything is a function of the source and a seed: two runs see the same
// keys in the same order.
package keys
