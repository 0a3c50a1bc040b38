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

// A contentDeleter deletes content that a domain has produced, as a wrong lifecycle rule of the storage account would.
// The bundle of the content may be open or closed. The deletion happens inside the account, and takes no simulated
// time.
type contentDeleter struct {
	baseClient
	contents *container.Client
}

func (sim *simulation) newContentDeleter(phase int) (*contentDeleter, error) {
	key, err := container.NewSharedKeyCredential(sim.env.blobs.Name(), sim.env.blobs.Key())
	if err != nil {
		return nil, err
	}
	contents, err := container.NewClientWithSharedKeyCredential(sim.env.blobs.Endpoint()+"/"+contentContainer, key, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: sim.env.blobs.Transport(), Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	if err != nil {
		return nil, err
	}
	return &contentDeleter{baseClient: sim.newClient("deleter", uint64(450+phase)), contents: contents}, nil //nolint:gosec // there are few days
}

// runUntil deletes several contents. It returns early if finish is closed.
func (x *contentDeleter) runUntil(finish <-chan struct{}) {
	const deletions = 6
	for range deletions {
		if !x.pause(time.Duration(1+x.rng.IntN(20_000)) * time.Millisecond) {
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		if err := x.deleteNewest(); err != nil {
			x.sim.Fail(fmt.Errorf("delete a content: %w", err))
			return
		}
	}
}

var madeOnRequest = regexp.MustCompile(`/[0-9a-f-]{36}-[0-9a-f-]{36}$`)

// deleteNewest deletes one of the two newest contents. Their bundles are most likely open.
func (x *contentDeleter) deleteNewest() error {
	var found []*container.BlobItem
	for pages := x.contents.NewListBlobsFlatPager(nil); pages.More(); {
		page, err := pages.NextPage(x.sim.ctx)
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
	name := *found[x.rng.IntN(min(len(found), 2))].Name
	blob := x.contents.NewBlobClient(name)
	got, err := blob.DownloadStream(x.sim.ctx, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return err
	}
	x.sim.work.checkers[containers.Invariants].(*invariants.Observer).Deleted(name)
	x.sim.work.ledger.checker.Deleting(body)
	if _, err := blob.Delete(x.sim.ctx, nil); err != nil {
		return err
	}
	x.sim.work.ledger.checker.Deleted(body)
	return nil
}
