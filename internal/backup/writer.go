package backup

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A Writer writes a stream, one frame with each write. Call order: File (Data)* for
// each file, then End. After an error the stream ends where Whole says.
type Writer struct {
	w        io.Writer
	id       uint64
	hasBlobs bool
	offset   int64
	left     int64 // bytes of the open file that are to come
	whole    int64
	frame    []byte
}

// NewWriter begins a stream.
func NewWriter(w io.Writer, h *Header) (*Writer, error) {
	bw := &Writer{w: w, id: h.BackupID, hasBlobs: h.HasBlobs}
	if err := bw.write(h.appendPreamble(nil)); err != nil {
		return nil, err
	}
	return bw, bw.writeFrame(typeHeader, h.append(nil))
}

// File begins a file of size bytes, a table or a blob file.
func (w *Writer) File(kind manifest.FileKind, f File, size int64) error {
	t, ok := fileTypes[kind]
	if w.left != 0 || size <= 0 {
		return fmt.Errorf("backup: file %d has %d bytes, and %d of the one before are missing", f.Num, size, w.left)
	}
	if !ok || t == typeBlob && !w.hasBlobs {
		return fmt.Errorf("backup: a stream of this version has no file as %s", manifest.FileName(kind, f.Num))
	}
	if err := w.writeFrame(t, appendUint64s(nil, f.Num, f.ID, uint64(size))); err != nil {
		return err
	}
	w.left = size
	return nil
}

// Data writes the next bytes of the file: MaxPayload at the most.
func (w *Writer) Data(b []byte) error {
	if int64(len(b)) > w.left || len(b) == 0 || len(b) > MaxPayload {
		return fmt.Errorf("backup: %d bytes at once, of %d that are to come", len(b), w.left)
	}
	if err := w.writeFrame(typeData, b); err != nil {
		return err
	}
	if w.left -= int64(len(b)); w.left == 0 {
		w.whole = w.offset
	}
	return nil
}

// End writes the description of the store and ends the stream.
func (w *Writer) End(description []byte) error {
	for len(description) > MaxPayload {
		if err := w.writeFrame(typeDescription, description[:MaxPayload]); err != nil {
			return err
		}
		description = description[MaxPayload:]
	}
	if err := w.writeFrame(typeEnd, description); err != nil {
		return err
	}
	w.whole = w.offset
	return nil
}

// Whole returns the offset after the last file that is whole in the stream, or after its end; 0 if there is none.
func (w *Writer) Whole() int64 { return w.whole }

func (w *Writer) writeFrame(t frameType, payload []byte) error {
	f := append(w.frame[:0], 0, 0, 0, 0)
	f = binary.LittleEndian.AppendUint32(f, uint32(len(payload)))
	f = append(f, byte(t))
	f = append(f, payload...)
	binary.LittleEndian.PutUint32(f, base.Checksum(w.id, uint64(w.offset), f[4:]))
	w.frame = f
	return w.write(f)
}

func (w *Writer) write(b []byte) error {
	n, err := w.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("siftkv: backup: write at offset %d: %w", w.offset, err)
	}
	w.offset += int64(n)
	return nil
}
