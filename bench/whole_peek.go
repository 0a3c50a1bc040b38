package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/service"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// measureWholePeek measures the largest Peek from an actor's point of view: over HTTP, from a
// complete node that requests the content from the domain over its bus. The domain reads the list
// of events, waits for some time, and writes 50 MB into the exchange. The hub streams this content
// from the exchange to the actor.
func measureWholePeek(ctx context.Context, r *scenarioRun, a *account.Account, src *eventSource) (err error) {
	takes := pickSize(r, 10*time.Second, time.Second)
	r.reportProgress(0.9, "over HTTP, with a domain that takes %v", takes)
	folder, err := os.MkdirTemp("", "messagehub-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	actor := src.newActor()
	if err := fillStore(ctx, hub, a, actor, src.newEvents(int(worstEvents), actor, 1)); err != nil {
		return err
	}
	s, err := service.Start(ctx, service.Options{
		Account: a, Database: hub.Name, Transport: a.Line(), Folder: folder,
		Listeners: true, Domains: config.Domains{{Name: domain.TimeSeries, Content: domain.Request}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	stop, err := serveContent(ctx, s, takes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	began := time.Now()
	got, err := downloadBundle(ctx, s.URL(), actor)
	took := time.Since(began)
	if err != nil {
		return err
	}
	if want := int64(worstEvents) << 10; got != want {
		return fmt.Errorf("the actor got %d bytes, want %d", got, want)
	}
	r.reportFigure("hub", fmt.Sprintf("whole peek, domain at %v", takes), took.Seconds(), "s", figure.AtMost(30))
	r.reportFigure("hub", "whole peek without the domain", (took - takes).Seconds(), "s", nil)
	r.reportFigure("hub", "whole peek, body", float64(got)/(1<<20), "MB", nil)
	return nil
}

// serveContent runs a domain that answers each content request after the delay takes.
func serveContent(ctx context.Context, s *service.Service, takes time.Duration) (stop func() error, err error) {
	key, err := container.NewSharedKeyCredential(embedded.WellKnownAccount, embedded.WellKnownKey)
	if err != nil {
		return nil, err
	}
	exchange, err := container.NewClientWithSharedKeyCredential(
		fmt.Sprintf("http://%s/%s/messagehub-exchange", s.Exchange(), embedded.WellKnownAccount), key, nil)
	if err != nil {
		return nil, err
	}
	client, err := domainclient.New(domainclient.Options{
		Origin: domain.TimeSeries.String(),
		Connect: domainclient.ConnectionString("Endpoint=sb://" + s.Bus().String() +
			";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"),
		Exchange: exchange,
	})
	if err != nil {
		return nil, err
	}
	serving, end := context.WithCancel(ctx)
	var domains sync.WaitGroup
	domains.Go(func() {
		_ = client.Serve(serving, func(ctx context.Context, q *domainclient.Request) (io.Reader, error) { // Serve runs until stop is called
			timer := time.NewTimer(takes)
			defer timer.Stop()
			ids, err := q.EventIDs(ctx)
			if err != nil {
				return nil, err
			}
			select {
			case <-timer.C:
				return io.LimitReader(endlessContent{}, int64(len(ids))<<10), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	})
	return func() error {
		end()
		domains.Wait()
		return client.Close(context.WithoutCancel(ctx))
	}, nil
}

// endlessContent is a reader that never returns io.EOF.
type endlessContent struct{}

func (endlessContent) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' ' + byte(i%64)
	}
	return len(p), nil
}

// downloadBundle fetches the next bundle of an actor and returns its size in bytes.
func downloadBundle(ctx context.Context, url string, actor domain.ActorID) (int64, error) {
	client, err := hubclient.New(hubclient.Options{URL: url, Budget: -1, Resume: -1})
	if err != nil {
		return 0, err
	}
	defer client.Close()
	b, err := client.Peek(ctx, actor.String(), hubclient.PeekOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = b.Close() }() // Close never fails
	return io.Copy(io.Discard, b)
}
