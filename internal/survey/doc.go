// Package survey finds out what is in a store's directory and what is wrong with
// it, without opening the store: every file is looked at for itself, so that one
// damaged file does not hide the others.
//
// It changes nothing. kv.Verify, siftkv verify, siftkv stats and the repair of stores are
// made of it.
package survey
