// Package doctor is the root of what looks at a store from outside, whole or damaged:
// repair makes a store of what is left of one, and dump prints single files. Both, and
// Verify, are made of package survey.
package doctor
