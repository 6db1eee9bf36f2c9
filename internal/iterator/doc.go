// Package iterator walks internal keys: those of a memtable, a table or a sorted run, and of several of them merged.
// Sources gathers and reuses what one iterator of a store reads; Compaction passes once over merged input and drops
// what no reader can see. Keys come in the order of base.Compare, all versions of a user key included: which of them a
// reader sees is for the caller to decide. No iterator here is safe for concurrent use.
package iterator
