package main

import (
	"errors"
	"time"

	"github.com/blevesearch/bleve/v2"

	"github.com/siftkv/siftkv/kv"
)

// A writer is a kv.Writer that gathers what one change makes of texts; nil is one that is deleted.
type writer struct {
	index  bleve.Index
	texts  map[string]*document
	writes uint64
}

func (w *writer) Set(key, text []byte) error {
	w.writes++
	w.texts[string(key)] = &document{string(text)}
	return nil
}

func (w *writer) Delete(key []byte) error {
	w.writes++
	w.texts[string(key)] = nil
	return nil
}

// DeleteRange deletes the keys of the range that the index has, and those that came before in the same change.
func (w *writer) DeleteRange(lo, hi []byte) error {
	w.writes++
	for key := range w.texts {
		if key >= string(lo) && (hi == nil || key < string(hi)) {
			w.texts[key] = nil
		}
	}
	keys, err := w.index.FieldDictRange("_id", lo, hi) // hi is in it
	if err != nil {
		return err
	}
	e, err := keys.Next()
	for ; e != nil && err == nil; e, err = keys.Next() {
		if hi == nil || e.Term < string(hi) {
			w.texts[e.Term] = nil
		}
	}
	return errors.Join(err, keys.Close())
}

// The store has neither texts that expire nor operands. An index over such ones would take the keys from its slot, and
// the texts from the store.
func (w *writer) SetUntil(_, _ []byte, _ time.Time) error { return errors.ErrUnsupported }
func (w *writer) Merge(_, _ []byte) error                 { return errors.ErrUnsupported }

// search returns the keys of the texts that have a word, in order.
func (x *index) search(word string) (keys []string, err error) {
	n, err := x.bleve.DocCount()
	if err != nil {
		return nil, err
	}
	request := bleve.NewSearchRequestOptions(bleve.NewTermQuery(word), int(n), 0, false)
	request.SortBy([]string{"_id"})
	result, err := x.bleve.Search(request)
	if err != nil {
		return nil, err
	}
	for _, hit := range result.Hits {
		keys = append(keys, hit.ID)
	}
	return keys, nil
}

// lastChange returns the number of the last change of a store that has slots.
func lastChange(db *kv.DB) (last uint64) {
	for _, s := range db.Slots() {
		last = max(last, s.Acked+s.Behind)
	}
	return last
}
