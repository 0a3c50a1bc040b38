package simulate

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/invariants"
)

// A deleter is a rule of the storage account that is wrong: now and then it deletes content that a
// domain has made on request, whether its bundle is open or not. It acts within the account, so it
// is as if no time passes.
type deleter struct {
	party
	contents *container.Client
}

func (w *world) newDeleter(day int) (*deleter, error) {
	key, err := container.NewSharedKeyCredential(w.blobs.Name(), w.blobs.Key())
	if err != nil {
		return nil, err
	}
	contents, err := container.NewClientWithSharedKeyCredential(w.blobs.Endpoint()+"/"+content_, key, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: w.blobs.Transport(), Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	if err != nil {
		return nil, err
	}
	return &deleter{party: w.newParty("deleter", uint64(450+day)), contents: contents}, nil //nolint:gosec // there are few days
}

// acts deletes a few contents, until finish is closed.
func (x *deleter) acts(finish <-chan struct{}) {
	const deletions = 6
	for range deletions {
		if !x.pause(time.Duration(1+x.d.n(20_000)) * time.Millisecond) {
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		if err := x.deletes(); err != nil {
			x.w.fail(fmt.Errorf("delete a content: %w", err))
			return
		}
	}
}

var madeOnRequest = regexp.MustCompile(`/[0-9a-f-]{36}-[0-9a-f-]{36}$`)

// deletes deletes one of the two newest contents: their bundles are most likely to be open.
func (x *deleter) deletes() error {
	var found []*container.BlobItem
	for pages := x.contents.NewListBlobsFlatPager(nil); pages.More(); {
		page, err := pages.NextPage(x.w.ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Segment.BlobItems {
			if madeOnRequest.MatchString(*item.Name) {
				found = append(found, item)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b *container.BlobItem) int {
		return b.Properties.LastModified.Compare(*a.Properties.LastModified)
	})
	name := *found[x.d.n(min(len(found), 2))].Name
	blob := x.contents.NewBlobClient(name)
	got, err := blob.DownloadStream(x.w.ctx, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return err
	}
	x.w.judges[containers.Invariants].(*invariants.Observer).Deleted(name)
	x.w.ledger.judge.Deleting(body)
	if _, err := blob.Delete(x.w.ctx, nil); err != nil {
		return err
	}
	x.w.ledger.judge.Deleted(body)
	return nil
}
