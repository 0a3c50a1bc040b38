package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/domain"
)

// A batch contains the events of one request, with their line numbers.
type batch struct {
	body  []byte // JSON array
	lines []int
	bytes int64 // number of bytes of these lines in the input, including line ends
}

// A lineError is a fault in one line.
type lineError struct {
	line int
	what string
}

func (f lineError) Error() string { return fmt.Sprintf("line %d: %s", f.line, f.what) }

const lineBytes = 32 << 20 // maximum length of a line, in bytes

// A batcher groups JSON lines into batches.
type batcher struct {
	r       *bufio.Reader
	limit   int // maximum number of events in a batch
	line    int
	pending []byte // line that did not fit into the previous batch, or nil
}

func newBatcher(r io.Reader, limit int) *batcher {
	return &batcher{r: bufio.NewReaderSize(r, 256<<10), limit: limit}
}

// nextBatch returns the next batch, or io.EOF at the end of the input. If some
// lines are not events, its error joins a lineError for each of them.
func (b *batcher) nextBatch() (batch, error) {
	out := batch{body: []byte{'['}}
	var faults []error
	for len(out.lines) < b.limit {
		line, err := b.nextLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return batch{}, errors.Join(append(faults, err)...)
		}
		if len(out.lines) > 0 && len(out.body)+len(line) > hubclient.BatchBytes {
			b.pending = line
			break
		}
		out.bytes += int64(len(line)) + 1
		if err := checkEvent(line); err != nil {
			faults = append(faults, lineError{b.line, err.Error()})
			if len(faults) == maxFaultsShown {
				break
			}
		}
		if len(out.lines) > 0 {
			out.body = append(out.body, ',', '\n')
		}
		out.body = append(out.body, line...)
		out.lines = append(out.lines, b.line)
	}
	switch {
	case len(faults) > 0:
		return batch{}, errors.Join(faults...)
	case len(out.lines) == 0:
		return batch{}, io.EOF
	}
	out.body = append(out.body, ']')
	return out, nil
}

// maxFaultsShown is the maximum number of printed lineErrors. A file that
// contains no events has one for each line.
const maxFaultsShown = 20

// nextLine returns the next line that is not blank, without its line end.
func (b *batcher) nextLine() ([]byte, error) {
	if line := b.pending; line != nil {
		b.pending = nil
		return line, nil
	}
	for {
		b.line++
		var line []byte
		for {
			part, err := b.r.ReadSlice('\n')
			line = append(line, part...)
			if len(line) > lineBytes {
				return nil, lineError{b.line, fmt.Sprintf("longer than %d MB; want one event a line", lineBytes>>20)}
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
				return nil, err
			}
			break
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// An eventLine is an event decoded from a JSON line.
type eventLine struct {
	ID               *string         `json:"id"`
	Recipient        *string         `json:"recipient"`
	Origin           *string         `json:"origin"`
	ContentType      *string         `json:"contentType"`
	DocumentType     *string         `json:"documentType"`
	SupportsBundling *bool           `json:"supportsBundling"`
	Weight           *int64          `json:"weight"`
	Payload          json.RawMessage `json:"payload"`
}

// checkEvent checks those rules for events that do not depend on stored data,
// so that faults in a file are reported before any request.
func checkEvent(line []byte) error {
	if line[0] != '{' {
		return errors.New("want one JSON object a line, {…}")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var e eventLine
	if err := decoder.Decode(&e); err != nil {
		return explainJSON(err)
	}
	if decoder.InputOffset() != int64(len(line)) {
		return errors.New("want nothing after the object")
	}
	parse := func(name string, text *string, parser func(string) error) error {
		if text == nil {
			return errors.New(name + ": missing")
		}
		return parser(*text)
	}
	faults := []error{
		parse("id", e.ID, func(s string) error { _, err := domain.ParseEventID(s); return err }),
		parse("recipient", e.Recipient, func(s string) error { _, err := domain.ParseActorID(s); return err }),
		parse("origin", e.Origin, func(s string) error { _, err := domain.ParseOrigin(s); return err }),
		parse("contentType", e.ContentType, func(s string) error { _, err := domain.ParseContentType(s); return err }),
		parse("documentType", e.DocumentType, func(s string) error { _, err := domain.ParseDocumentType(s); return err }),
	}
	if e.SupportsBundling == nil {
		faults = append(faults, errors.New("supportsBundling: missing"))
	}
	if e.Weight == nil {
		faults = append(faults, errors.New("weight: missing"))
	} else if _, err := domain.NewWeight(*e.Weight); err != nil {
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// explainJSON converts an error of encoding/json to a text for a person.
func explainJSON(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want := map[string]string{"string": "a string", "bool": "true or false", "int64": "a whole number of KB below 2^63"}[wrong.Type.String()]
		return fmt.Errorf("%s: want %s, got %s", wrong.Field, want, wrong.Value)
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(text, "unknown field") {
		return errors.New(text + "; known are id, recipient, origin, contentType, documentType, supportsBundling, weight, payload")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("not JSON: the text ends inside the object")
	}
	return errors.New("not JSON: " + text)
}
