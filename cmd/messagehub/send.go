package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
)

func (p *process) sendCommand() *cobra.Command {
	var url, connection string
	s := &batchSender{p: p}
	cmd := &cobra.Command{
		Use:   "send FILE|-",
		Short: "Send DataAvailable events, one JSON object per line",
		Long: "Send the events of a file, or of stdin, in order. A line is one event:\n\n" +
			`  {"id":"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41","recipient":"5790001330552","origin":"Charges",` + "\n" +
			`   "contentType":"ChargePriceList","documentType":"D18","supportsBundling":true,"weight":1}` + "\n\n" +
			"(on one line) and optionally \"payload\" with the data, any JSON.\n\n" +
			"Sending a file again is safe: the hub stores each id once. A batch that the hub cannot\n" +
			"store now is repeated until --timeout.\n\n" +
			"With --servicebus the events are sent over Service Bus, as domains do: the bus accepts\n" +
			"them, and keeps the order of each recipient; an event that the hub refuses later becomes a dead\n" +
			"letter. For another connection than the default one, write --servicebus=CONNECTION.",
		Example: "  messagehub send events.jsonl\n" +
			"  make-events | messagehub send -\n" +
			"  messagehub send --servicebus events.jsonl",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want one FILE, or - for stdin")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&url, "url", hubclient.DefaultURL, "`URL` of the hub")
	cmd.Flags().StringVar(&connection, "servicebus", "", "send over Service Bus: a `CONNECTION` string, or a namespace such as example.servicebus.windows.net; without a value, "+
		busVariable+" or the bus of the hub on this machine")
	cmd.Flags().Lookup("servicebus").NoOptDefVal = "default"
	cmd.MarkFlagsMutuallyExclusive("url", "servicebus")
	cmd.Flags().IntVar(&s.size, "batch", 1000, "at most `N` events in a request, or in a message for one recipient")
	cmd.Flags().DurationVar(&s.poster.Timeout, "timeout", time.Minute, "give up on a batch after this `TIME`")
	p.addAccess(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, args []string) error {
		if s.size < 1 {
			return p.usage("--batch: want at least 1, got %d", s.size)
		}
		byBus := cmd.Flags().Changed("servicebus")
		if !byBus {
			hub, err := p.newHub(url)
			if err != nil {
				return p.usage("%w", err)
			}
			defer hub.Close()
			s.poster.Hub = hub
		}
		input, size, err := p.open(args[0])
		if err != nil {
			return err
		}
		defer input.Close()
		if byBus {
			return p.sendByBus(ctx, s, connection, input, size)
		}
		return s.sendBatches(ctx, input, size)
	})
	return cmd
}

// open opens a file; "-" stands for standard input. The size is -1 if it is
// unknown.
func (p *process) open(name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(p.in), -1, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, errors.Join(err, f.Close())
	case info.IsDir():
		return nil, 0, errors.Join(fmt.Errorf("%s is a folder; name a file of events", name), f.Close())
	case !info.Mode().IsRegular():
		return f, -1, nil
	}
	return f, info.Size(), nil
}

// A batchSender sends batches one after another, to preserve their order.
type batchSender struct {
	p      *process
	poster hubclient.Poster
	size   int

	accepted, duplicates, conflicts int
}

// errRefused means that the hub rejected some lines, which were printed to
// standard error.
var errRefused = errors.New("not every event was accepted; the lines above say which, and why")

func (s *batchSender) sendBatches(ctx context.Context, input io.Reader, size int64) error {
	progress := terminal.NewByteProgress(s.p.err, size)
	err := s.sendAll(ctx, newBatcher(input, s.size), progress)
	progress.Clear()
	fmt.Fprintf(s.p.out, "%d accepted, %d duplicates, %d conflicts\n", s.accepted, s.duplicates, s.conflicts)
	if err == nil && s.conflicts > 0 {
		err = errRefused
	}
	return err
}

// sendAll sends all batches. It stops at the first batch that is not accepted,
// because later batches may depend on it.
func (s *batchSender) sendAll(ctx context.Context, batches *batcher, progress *terminal.Progress) error {
	for {
		b, err := batches.nextBatch()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.sendBatch(ctx, b, progress)
		}
		if err != nil {
			return err
		}
		progress.Add(len(b.lines), b.bytes)
	}
}

func (s *batchSender) sendBatch(ctx context.Context, b batch, progress *terminal.Progress) error {
	answer, err := s.poster.Post(ctx, b.body, progress.Printf)
	if answer != nil {
		s.accepted += answer.Accepted
		s.duplicates += answer.Duplicates
	}
	refused, ok := errors.AsType[*hubclient.Problem](err)
	if !ok {
		return err
	}
	if answer != nil { // the hub has stored the valid events of the batch
		s.conflicts += len(refused.Errors)
		for _, f := range refused.Errors {
			progress.Printf("%s", s.locateFault(f, b))
		}
		return nil
	}
	for _, f := range refused.Errors {
		progress.Printf("%s", s.locateFault(f, b))
	}
	summary := *refused
	summary.Errors = nil // removed, because each fault is already printed on its own line
	return fmt.Errorf("the hub refused lines %d to %d, and stored no event of them: %w", b.lines[0], b.lines[len(b.lines)-1], &summary)
}

// locateFault describes a fault, with its line in the file instead of its
// position in the body.
func (s *batchSender) locateFault(f hubclient.Fault, b batch) string {
	index := f.Index()
	if index < 0 || index >= len(b.lines) {
		return f.Pointer + ": " + f.Detail
	}
	return lineError{b.lines[index], f.Detail}.Error()
}
