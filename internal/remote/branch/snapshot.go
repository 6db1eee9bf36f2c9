package branch

import (
	"context"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/remote/locallog"
	"github.com/siftkv/siftkv/internal/sequence"
)

// A Snapshot is the state of a branch at one moment, without anything that it does not need. It is complete: only the
// sorted files and the blob files must be read in addition.
type Snapshot struct {
	List        *filelist.List // its logs begin nowhere: their bytes are in logs
	ManifestNum uint64         // of the manifest in force
	logs        []filelist.Log

	slot uint64 // of the list, where it was read
	data uint64 // of the newest data there
}

// ReadSnapshot reads the state that a branch has now; it must exist. It is a Tail, and what filelist.Read needs.
func ReadSnapshot(ctx context.Context, s *sequence.Sequence) (now *Snapshot, err error) {
	err = s.Retry(func() error {
		v, err := s.Tail(ctx)
		if err != nil {
			return err
		}
		st, err := filelist.Read(ctx, s, v, filelist.Known{})
		if err != nil {
			return err
		}
		if st.List == nil {
			return fmt.Errorf("%w in %q", base.ErrNotExist, s.Prefix())
		}
		logs, err := st.ReadLogs(s)
		if err != nil {
			return err
		}
		now = &Snapshot{List: st.List, ManifestNum: st.ManifestNum, logs: logs, slot: st.Slot, data: v.Data}
		return now.trim()
	})
	if sequence.IsMissing(err) {
		err = sequence.AsCorruption(err)
	}
	return now, err
}

// needsAll reports whether the branch, as it is now, needs all sorted files and blob files of a state that was read
// before. It is a Tail, and if there is something new, a GET for that and what filelist.ReadList needs.
func needsAll(ctx context.Context, s *sequence.Sequence, before *Snapshot) (all bool, err error) {
	err = s.Retry(func() error {
		all = false
		v, err := s.Tail(ctx)
		if err != nil || v.Data == 0 {
			return err
		}
		if all = v.Data == before.data; all {
			return nil
		}
		newest, err := filelist.ReadBody(ctx, s, v, v.Data)
		if err != nil {
			return err
		}
		if all = newest.ListSlot == before.slot; all {
			return nil
		}
		st, err := filelist.ReadList(ctx, s, v, newest, filelist.Known{})
		if err != nil {
			return err
		}
		now := &Snapshot{List: st.List, ManifestNum: st.ManifestNum}
		if err := now.trim(); err != nil {
			return err
		}
		for num, t := range before.List.Files {
			if now.List.Files[num] != t {
				return nil
			}
		}
		all = true
		return nil
	})
	return all, err
}

// trim drops what the manifest does not need: stored files that the writer has not removed yet, or keeps for slots, and
// logs whose writes are in sorted files.
func (s *Snapshot) trim() error {
	live, oldest, err := filelist.ReadManifest(s.List.Manifest, s.ManifestNum)
	if err != nil {
		return err
	}
	files := make(map[uint64]filelist.File, len(live))
	for num, kind := range live {
		t, there := s.List.Files[num]
		if !there || t.Kind != kind {
			return fmt.Errorf("%w: the manifest needs %s, which is not in it", filelist.ErrMalformed,
				manifest.FileName(kind, num))
		}
		files[num] = t
	}
	s.List.Files, s.List.LogStart = files, 0
	s.List.SlotFiles = nil                // consumers follow the branch, and no copy of it
	s.List.Location = locallog.Location{} // logs on some machine's disk stay there: what was flushed is what there is
	var nums []uint64
	for _, num := range s.List.Logs {
		if num >= oldest {
			nums = append(nums, num)
		}
	}
	var logs []filelist.Log
	for _, log := range s.logs {
		if log.Number >= oldest {
			logs = append(logs, log)
		}
	}
	s.List.Logs, s.logs = nums, logs
	return nil
}

// size returns the bytes of the sorted files, blob files and logs.
func (s *Snapshot) size() (bytes int64) {
	for _, t := range s.List.Files {
		bytes += t.Size
	}
	for _, log := range s.logs {
		bytes += int64(len(log.Data))
	}
	return bytes
}

// first returns the entry with which a branch begins, in a slot.
func (s *Snapshot) first(slot uint64) []byte {
	list := *s.List
	list.LogStart = slot
	b := filelist.Body{ListSlot: slot, List: list.Encode(), Chunks: s.Chunks()}
	return b.Encode()
}

// Chunks returns the logs.
func (s *Snapshot) Chunks() (chunks []filelist.Chunk) {
	for _, log := range s.logs {
		chunks = append(chunks, filelist.Chunk{Log: log.Number, Data: log.Data})
	}
	return chunks
}
