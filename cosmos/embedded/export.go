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

// Export writes the account as JSON lines: databases and containers with their properties and
// throughput, and the documents as clients wrote them. It reads one state of the account, and
// omits etags, times and expired documents.
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

// Import adds the lines that Export wrote to this account, and returns the number of documents.
// It does not change existing databases and containers. It replaces documents that have the same
// id. An error names the line; the lines before it may have been imported.
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
