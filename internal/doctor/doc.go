// Package doctor is the root of what looks at a store from outside, at rest or
// read-only, whole or damaged: survey finds out what is in a directory and what is
// wrong with it, repair makes a store of what is left, dump prints single files,
// and keytext writes keys for people and for JSON.
package doctor
