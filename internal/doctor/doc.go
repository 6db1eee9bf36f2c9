// Package doctor looks at a store from outside, whole or damaged, with package survey:
// Verify checks one, and package repair makes a store of what is left of one.
package doctor
