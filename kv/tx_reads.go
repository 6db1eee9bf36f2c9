package kv

import "slices"

// Get returns a copy of the value of key, or ErrNotFound.
func (t *Tx) Get(key []byte) ([]byte, error) { return t.AppendGet(nil, key) }

// AppendGet appends the value of key to dst and returns the extended slice; dst
// as it was and ErrNotFound if there is no such key.
func (t *Tx) AppendGet(dst, key []byte) ([]byte, error) {
	dst, ok, err := t.get(dst, key, true)
	if err == nil && !ok {
		err = ErrNotFound
	}
	return dst, err
}

// Has reports whether there is a value under key. After Merge there is one, and Has reads
// nothing of the store.
func (t *Tx) Has(key []byte) (bool, error) {
	_, ok, err := t.get(nil, key, false)
	return ok, err
}

// get looks key up, among the transaction's own writes first: what these answer is
// not read from the store, and cannot conflict.
func (t *Tx) get(dst, key []byte, want bool) ([]byte, bool, error) {
	if err := t.usable(); err != nil {
		return dst, false, err
	}
	own, err := t.writes.get(key)
	switch {
	case err != nil:
		return dst, false, err
	case len(own.operands) > 0:
		return t.getMerged(dst, key, own, want)
	case own.whole:
		if own.found && want {
			dst = append(dst, own.value...)
			if dst == nil {
				dst = []byte{}
			}
		}
		return dst, own.found, nil
	}
	return t.read(dst, key, want)
}

// getMerged is get for a key with own operands. There is a value, whatever is under them:
// if it is not wanted, nothing of the store is read.
func (t *Tx) getMerged(dst, key []byte, own ownValue, want bool) ([]byte, bool, error) {
	if !want {
		return dst, true, nil
	}
	if !own.whole {
		var err error
		if own.value, own.found, err = t.read(nil, key, true); err != nil {
			return dst, false, err
		}
	}
	value, err := t.db.combine(key, own)
	switch {
	case err != nil:
		return dst, false, err
	case dst == nil:
		return value, true, nil
	}
	return append(dst, value...), true, nil
}

// read looks key up in the store, and remembers that.
func (t *Tx) read(dst, key []byte, want bool) ([]byte, bool, error) {
	if t.writable {
		if err := t.reads.addKey(key); err != nil {
			return dst, false, err
		}
	}
	if t.pinned != nil {
		return t.pinned.getPinned(dst, key, want)
	}
	return t.db.get(dst, key, t.seq, want)
}

// MultiGet is DB.MultiGet for what the transaction reads: the store as it was when it
// began, and its own writes.
func (t *Tx) MultiGet(keys [][]byte) (values [][]byte, err error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	values = make([][]byte, len(keys))
	var rest [][]byte
	var places []int            // of rest, in keys
	var merged map[int]ownValue // of rest, those that have own operands over what is read
	for i, key := range keys {
		own, err := t.writes.get(key)
		if err != nil {
			return nil, err
		}
		switch {
		case own.whole && len(own.operands) > 0:
			if values[i], err = t.db.combine(key, own); err != nil {
				return nil, err
			}
			continue
		case own.whole:
			if own.found {
				values[i] = append([]byte{}, own.value...)
			}
			continue
		case len(own.operands) > 0:
			if merged == nil {
				merged = map[int]ownValue{}
			}
			merged[len(rest)] = own
		}
		if t.writable {
			if err := t.reads.addKey(key); err != nil {
				return nil, err
			}
		}
		rest, places = append(rest, key), append(places, i)
	}
	got, err := t.readMany(rest)
	if err != nil {
		return nil, err
	}
	for i, value := range got {
		if own, ok := merged[i]; ok {
			own.value, own.found = value, value != nil
			if value, err = t.db.combine(rest[i], own); err != nil {
				return nil, err
			}
		}
		values[places[i]] = value
	}
	return values, nil
}

// readMany is MultiGet in the store alone.
func (t *Tx) readMany(keys [][]byte) ([][]byte, error) {
	if t.pinned != nil {
		return t.pinned.multiGetPinned(keys)
	}
	return t.db.multiGet(keys, t.seq)
}

// combine returns the value of a key with operands: own has what is under them too. It is the
// caller's, and not nil.
func (d *DB) combine(key []byte, own ownValue) ([]byte, error) {
	values := own.operands
	if own.found {
		values = append(values, own.value)
	}
	slices.Reverse(values)
	value, err := d.operands.mergeOperands(key, values)
	if value == nil && err == nil {
		value = []byte{}
	}
	return value, err
}
