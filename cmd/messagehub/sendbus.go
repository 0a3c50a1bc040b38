package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// A busSender sends events to the bus. It cannot report whether the hub accepts
// them: a message that the hub rejects becomes a dead letter.
type busSender struct {
	p       *process
	domain  *domainclient.Client
	timeout time.Duration
	handed  int
}

// eventsAtOnce is the number of lines that are read before they are sent. It is
// large, so that events are sent to many recipients concurrently.
const eventsAtOnce = 10_000

func (p *process) sendByBus(ctx context.Context, s *batchSender, connection string, input io.Reader, size int64) (err error) {
	place, err := p.bus(connection)
	if err != nil {
		return p.usage("--servicebus: %w", err)
	}
	if err := place.checkReachable(ctx); err != nil {
		return err
	}
	domain, err := domainclient.New(domainclient.Options{
		Connect: place.connect, Form: domainclient.JSON, EventsPerMessage: s.size, Logger: slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{ReplaceAttr: redactLogError})),
	})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if closeErr := domain.Close(closing); err == nil {
			err = closeErr
		}
	}()
	b := &busSender{p: p, domain: domain, timeout: s.poster.Timeout}
	progress := terminal.NewByteProgress(p.err, size)
	err = b.sendAll(ctx, newBatcher(input, eventsAtOnce), progress)
	progress.Clear()
	fmt.Fprintf(p.out, "%d accepted by the bus\n", b.handed)
	return err
}

// sendAll sends all batches. It stops at the first batch that the bus does not
// accept, because later events may depend on it.
func (s *busSender) sendAll(ctx context.Context, batches *batcher, progress *terminal.Progress) error {
	for {
		b, err := batches.nextBatch()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		events, err := busEvents(b)
		if err != nil {
			return err
		}
		if err := s.sendEvents(ctx, events); err != nil {
			return fmt.Errorf("lines %d to %d: %w", b.lines[0], b.lines[len(b.lines)-1], err)
		}
		progress.Add(len(b.lines), b.bytes)
	}
}

func (s *busSender) sendEvents(ctx context.Context, events []domainclient.Event) error {
	inTime, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	taken, err := s.domain.Send(inTime, events)
	s.handed += taken
	if err != nil && ctx.Err() == nil && inTime.Err() != nil {
		return fmt.Errorf("gave up after %s: %w", s.timeout, err)
	}
	return err
}

// busEvents decodes the lines of a batch, which must be valid.
func busEvents(b batch) ([]domainclient.Event, error) {
	var lines []eventLine
	if err := json.Unmarshal(b.body, &lines); err != nil {
		return nil, err
	}
	events := make([]domainclient.Event, len(lines))
	for i, e := range lines {
		id, err := uuid.Parse(*e.ID)
		if err != nil {
			return nil, lineError{b.lines[i], err.Error()}
		}
		events[i] = domainclient.Event{
			ID: id, Recipient: *e.Recipient, Origin: *e.Origin, ContentType: *e.ContentType, DocumentType: *e.DocumentType,
			SupportsBundling: *e.SupportsBundling, Weight: *e.Weight, Payload: e.Payload,
		}
	}
	return events, nil
}
