package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cmd/node/doctor"
	"github.com/messagehub/messagehub/repository/content"
)

// checkBlobContainers compares the storage account's containers with those that
// the hub needs.
func (d *diagnosis) checkBlobContainers(ctx context.Context) []doctor.Finding {
	var all []Resource
	for _, c := range deployment.Blobs(d.cfg) {
		r, err := provisionBlobs(ctx, d.cfg, ProvisionOptions{CheckOnly: true}, d.opts, c.Name)
		if err != nil {
			return singleFinding(doctor.Fail(c.Name, err.Error(), "check blob.endpoint and blob.key"))
		}
		all = append(all, r)
	}
	return comparisonFindings(all, "container")
}

// checkBlobRights tests, with a test blob, each right that the hub needs in
// each blob container.
func (d *diagnosis) checkBlobRights(ctx context.Context) []doctor.Finding {
	var found []doctor.Finding
	var granted []string
	removed := 0
	for _, c := range deployment.Blobs(d.cfg) {
		o, err := blobOptions(d.cfg, d.opts, c.Name)
		if err != nil {
			return singleFinding(doctor.Fail(c.Name, err.Error(), "check blob.endpoint and blob.key"))
		}
		tested, n, err := content.ProbeBlobs(ctx, o, d.opts.newID())
		if err != nil {
			return singleFinding(doctor.Fail(c.Name, err.Error(), "check blob.endpoint and blob.key"))
		}
		removed += n
		granted = granted[:0]
		for _, right := range tested {
			switch {
			case right.Err == nil:
				granted = append(granted, right.Name)
			case right.IsDenied:
				found = append(found, doctor.Fail(c.Name, fmt.Sprintf("the credential may not %s blobs of the container %s", right.Name, c.Name), d.blobRemedy(c.Name)))
			default:
				found = append(found, doctor.Fail(c.Name, fmt.Sprintf("the right to %s blobs of the container %s could not be tested: %v", right.Name, c.Name, right.Err), "run messagehub doctor --online again"))
			}
		}
	}
	text := strings.Join(granted, ", ")
	if removed > 0 {
		text += fmt.Sprintf("; removed %d blobs that earlier runs had left", removed)
	}
	return passedUnless(found, "%s", text)
}

func (d *diagnosis) blobRemedy(container string) string {
	if d.cfg.Blob.Key != "" {
		return "check blob.key, and the firewall of the account"
	}
	return fmt.Sprintf("give the identity the role %s for the container %s; messagehub provision --format az prints the commands", deployment.BlobContributor.Name, container)
}
