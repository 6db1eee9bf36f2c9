package remote

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/locallog"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A saved is the state of a branch at one moment, without anything that it does not need. It is complete: only the
// sorted files and the blob files must be read in addition.
type saved struct {
	list *fileList // its logs begin nowhere: their bytes are in logs
	num  uint64    // of the manifest in force
	logs []Log

	slot uint64 // of the list, where it was read
	data uint64 // of the newest data there
}

// readSaved reads the state that a branch has now; it must exist. It is a Tail, and what readState needs.
func readSaved(ctx context.Context, s *sequence.Sequence) (now *saved, err error) {
	err = s.Retry(func() error {
		v, err := s.Tail(ctx)
		if err != nil {
			return err
		}
		st, err := readState(ctx, s, v, mark{})
		if err != nil {
			return err
		}
		if st.list == nil {
			return fmt.Errorf("%w in %q", base.ErrNotExist, s.Prefix())
		}
		logs, err := st.logs(s)
		if err != nil {
			return err
		}
		now = &saved{list: st.list, num: st.num, logs: logs, slot: st.slot, data: v.Data}
		return now.trim()
	})
	if sequence.IsMissing(err) {
		err = sequence.AsCorruption(err)
	}
	return now, err
}

// needsAll reports whether the branch, as it is now, needs all sorted files and blob files of a state that was read
// before. It is a Tail, and if there is something new, a GET for that and what readList needs.
func needsAll(ctx context.Context, s *sequence.Sequence, before *saved) (all bool, err error) {
	err = s.Retry(func() error {
		all = false
		v, err := s.Tail(ctx)
		if err != nil || v.Data == 0 {
			return err
		}
		if all = v.Data == before.data; all {
			return nil
		}
		newest, err := readBody(ctx, s, v, v.Data)
		if err != nil {
			return err
		}
		if all = newest.lists == before.slot; all {
			return nil
		}
		st := &state{slot: newest.lists}
		if err := readList(ctx, s, v, st, newest, mark{}); err != nil {
			return err
		}
		now := &saved{list: st.list, num: st.num}
		if err := now.trim(); err != nil {
			return err
		}
		for num, t := range before.list.files {
			if now.list.files[num] != t {
				return nil
			}
		}
		all = true
		return nil
	})
	return all, err
}

// trim drops what the manifest does not need: sorted files and blob files that the writer has not removed yet, and logs
// whose writes are in sorted files.
func (s *saved) trim() error {
	live, oldest, err := readManifest(s.list.manifest, s.num)
	if err != nil {
		return err
	}
	files := make(map[uint64]file, len(live))
	for num, kind := range live {
		t, there := s.list.files[num]
		if !there || t.blob != (kind == manifest.FileBlob) {
			return fmt.Errorf("%w: the manifest needs %s, which is not in it", errList, manifest.FileName(kind, num))
		}
		files[num] = t
	}
	s.list.files, s.list.logStart = files, 0
	s.list.home = locallog.Location{} // logs on some machine's disk stay there: what was flushed is what there is
	var nums []uint64
	for _, num := range s.list.logs {
		if num >= oldest {
			nums = append(nums, num)
		}
	}
	var logs []Log
	for _, log := range s.logs {
		if log.Number >= oldest {
			logs = append(logs, log)
		}
	}
	s.list.logs, s.logs = nums, logs
	return nil
}

// readManifest returns the numbers of the sorted files and blob files that a manifest needs, and that of the oldest
// log.
func readManifest(data []byte, num uint64) (live map[uint64]manifest.FileKind, oldest uint64, err error) {
	memory := vfs.NewMem()
	w, err := memory.Create(filepath.Join(".", manifest.FileName(manifest.FileManifest, num)))
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		return nil, 0, err
	}
	tail, err := manifest.OpenTail(memory, ".", num)
	if err != nil {
		return nil, 0, err
	}
	there := map[manifest.DeletedTable]bool{}
	live = map[uint64]manifest.FileKind{}
	err = tail.Read(func(e *manifest.Edit) error {
		for _, t := range e.Deleted {
			delete(there, t)
		}
		for i := range e.Added {
			there[manifest.DeletedTable{Level: e.Added[i].Level, Num: e.Added[i].Table.Num}] = true
		}
		for i := range e.AddedBlobs {
			live[e.AddedBlobs[i].Num] = manifest.FileBlob
		}
		for _, num := range e.DeletedBlobs {
			delete(live, num)
		}
		oldest = max(oldest, e.LogNum)
		return nil
	})
	for t := range there {
		live[t.Num] = manifest.FileTable
	}
	return live, oldest, err
}

// size returns the bytes of the sorted files, blob files and logs.
func (s *saved) size() (bytes int64) {
	for _, t := range s.list.files {
		bytes += t.size
	}
	for _, log := range s.logs {
		bytes += int64(len(log.Data))
	}
	return bytes
}

// first returns the entry with which a branch begins, in a slot.
func (s *saved) first(slot uint64) []byte {
	list := *s.list
	list.logStart = slot
	b := body{lists: slot, list: list.encode(), chunks: s.chunks()}
	return b.encode()
}

func (s *saved) chunks() (chunks []chunk) {
	for _, log := range s.logs {
		chunks = append(chunks, chunk{log: log.Number, data: log.Data})
	}
	return chunks
}
