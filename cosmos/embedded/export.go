package embedded

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// Export writes the account as lines of JSON: databases and containers with their properties and throughput, and the
// documents as clients have written them. All lines are from one state of the account. Etags, times and expired
// documents are omitted.
func (e *Engine) Export(w io.Writer) error {
	if !e.beginRequest() {
		return ErrClosed
	}
	defer e.requests.Done()
	out := bufio.NewWriterSize(w, 1<<20)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	if err := e.inner.Export(func(l engine.Line) error { return lines.Encode(l) }); err != nil {
		return err
	}
	return out.Flush()
}

// Import reads the lines that Export has written, and returns the number of documents. It keeps existing databases and
// containers unchanged, and replaces documents with the same id. An error names the line; earlier lines may already be
// imported.
func (e *Engine) Import(ctx context.Context, r io.Reader) (documents int, err error) {
	if !e.beginRequest() {
		return 0, ErrClosed
	}
	defer e.requests.Done()
	lines := bufio.NewReaderSize(r, 1<<20)
	importer := e.inner.Importer()
	for n := 1; ; n++ {
		line, readErr := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var l engine.Line
			err := json.Unmarshal(line, &l)
			if err == nil {
				err = importer.Add(ctx, l)
			}
			if err != nil {
				return importer.Documents, fmt.Errorf("line %d: %w", n, err)
			}
		}
		if errors.Is(readErr, io.EOF) {
			err := importer.Flush(ctx)
			return importer.Documents, err
		}
		if readErr != nil {
			return importer.Documents, readErr
		}
	}
}
