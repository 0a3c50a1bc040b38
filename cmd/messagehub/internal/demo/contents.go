package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

const (
	contentOrigin = "Invoices"      // a domain that creates content on request
	contentActor  = "5790000000006" // an actor with one bundle of contentOrigin

	contentBucket = embedded.WellKnownAccount + "/messagehub-content"
	contentFolder = "content" // subfolder of the hub's data folder that stores contents
)

// A contentDomain creates the contents of bundles on request.
type contentDomain struct {
	client *domainclient.Client
	made   atomic.Int64 // how many times the domain has created content
}

func newContentDomain(n *node.Node) (*contentDomain, error) {
	credential, err := container.NewSharedKeyCredential(embedded.WellKnownAccount, embedded.WellKnownKey)
	if err != nil {
		return nil, err
	}
	exchange, err := container.NewClientWithSharedKeyCredential("http://"+n.BlobAddr().String()+"/"+embedded.WellKnownAccount+"/messagehub-exchange", credential, nil)
	if err != nil {
		return nil, err
	}
	c := &contentDomain{}
	c.client, err = domainclient.New(domainclient.Options{
		Origin: contentOrigin, Exchange: exchange,
		Connect: domainclient.ConnectionString("Endpoint=sb://" + n.BusAddr().String() +
			";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"),
	})
	return c, err
}

// makeContent returns the content of a bundle: a text that says how many times
// the domain has created content.
func (c *contentDomain) makeContent(context.Context, *domainclient.Request) (io.Reader, error) {
	return strings.NewReader(fmt.Sprintf("invoice, made %d times", c.made.Add(1))), nil
}

// showContents demonstrates how the ledger tracks the contents of bundles. It
// deletes the content of an open bundle from the hub's data folder. A crawl
// detects the deletion, and the next Peek makes the domain create the content
// again.
func (d *Demo) showContents(ctx context.Context, hub *hubclient.Client, n *node.Node, folder string) (err error) {
	maker, err := newContentDomain(n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.patience, errors.New("the ledger did not show the content in time"))
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- maker.client.Serve(serving, maker.makeContent) }()
	defer func() {
		stop()
		if failure := <-served; !errors.Is(failure, context.Canceled) {
			err = errors.Join(err, failure)
		}
		err = errors.Join(err, maker.client.Close(context.WithoutCancel(ctx)))
	}()

	bundle := uuid.NewString()
	event := fmt.Sprintf(`[{"id":%q,"recipient":%q,"origin":%q,"contentType":"Invoice","documentType":"D18","supportsBundling":true,"weight":1}]`,
		uuid.NewString(), contentActor, contentOrigin)
	if _, err := hub.SendEvents(ctx, []byte(event)); err != nil {
		return err
	}
	first, err := peekContent(ctx, hub, bundle)
	if err != nil {
		return err
	}
	rows, err := awaitRows(ctx, hub, bundle, 1)
	if err != nil {
		return err
	}
	// The demo deletes the file, as an operator might. A crawl detects the
	// deletion, and the ledger notifies the hub.
	file, err := content.FilePath(rows[0].Key)
	if err == nil {
		err = os.Remove(filepath.Join(folder, contentFolder, filepath.FromSlash(file)))
	}
	if err != nil {
		return err
	}
	if err := crawlContents(ctx, hub); err != nil {
		return err
	}
	again, err := peekContent(ctx, hub, bundle)
	if err != nil {
		return err
	}
	if rows, err = awaitRows(ctx, hub, bundle, 3); err != nil {
		return err
	}
	if first == again {
		return fmt.Errorf("the deleted content was returned again: %s", again)
	}
	d.reportContents(rows)
	return hub.As(contentActor).Dequeue(ctx, contentActor, bundle)
}

// peekContent returns the content of the actor's open bundle. If no bundle is
// open, Peek opens one whose id is bundle.
func peekContent(ctx context.Context, hub *hubclient.Client, bundle string) (string, error) {
	id, body, err := hub.Peek(ctx, contentActor, hubclient.PeekOptions{BundleID: bundle})
	if err == nil && id == "" {
		err = errors.New("no data waits for the actor whose content a domain makes")
	}
	return string(body), err
}

// awaitRows waits until the ledger has n rows for the contents of a bundle, and
// returns the rows in event order.
func awaitRows(ctx context.Context, hub *hubclient.Client, bundle string, n int) ([]hubclient.Object, error) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		texts, _, err := hub.Objects(ctx, url.Values{
			"bucket": {contentBucket}, "key": {"*/" + bundle + "-*"}, "currentState": {"false"},
		}, 10)
		if err != nil {
			return nil, err
		}
		rows := make([]hubclient.Object, len(texts))
		for i, text := range texts {
			if err := json.Unmarshal(text, &rows[i]); err != nil {
				return nil, err
			}
		}
		if len(rows) == n {
			slices.SortFunc(rows, func(a, b hubclient.Object) int { return a.EventTime.Compare(*b.EventTime) })
			return rows, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("the ledger has %d rows of a content, want %d: %w", len(rows), n, context.Cause(ctx))
		}
	}
}

// crawlContents starts a crawl, which compares the ledger with the stored
// contents, and waits until the crawl ends.
func crawlContents(ctx context.Context, hub *hubclient.Client) error {
	crawl, err := hub.StartCrawl(ctx, contentBucket, "")
	if err != nil {
		return err
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for crawl.State == string(domain.JobRunning) {
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("the crawl of its contents has not ended: %w", context.Cause(ctx))
		}
		if crawl, err = hub.ObjectJob(ctx, hubclient.CrawlsPath, crawl.ID); err != nil {
			return err
		}
	}
	if crawl.State != string(domain.JobCompleted) || crawl.Counts.Deleted != 1 {
		return fmt.Errorf("the crawl of its contents has %s with %d deleted objects: %s", crawl.State, crawl.Counts.Deleted, crawl.Report)
	}
	return nil
}

func (d *Demo) reportContents(rows []hubclient.Object) {
	fmt.Fprint(d.Out, "\nThe ledger of objects: the content of a bundle was deleted from its folder. A crawl detected the deletion,\n"+
		"and at the next Peek the domain made the content again.\n")
	table := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(table, "  …/%s\t%s\t%s\n", path.Base(r.Key), r.EventType, *r.Reason)
	}
	_ = table.Flush() // standard output: an error cannot be reported
	fmt.Fprintln(d.Out)
}
