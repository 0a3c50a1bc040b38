package content

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
)

// A ContainerStatus is the status of a container of an account.
type ContainerStatus struct {
	Exists       bool
	Created      bool   // this call created the container
	PublicAccess string // level of public access; "": the container is private
}

// ProvisionBlobs returns the status of the container in o. If the container does not exist and o.Create
// is true, ProvisionBlobs creates the container.
func ProvisionBlobs(ctx context.Context, o BlobOptions) (status ContainerStatus, err error) {
	b, err := newBlobs(o)
	if err != nil {
		return status, fmt.Errorf("open blobs: %w", err)
	}
	properties, err := b.container.GetProperties(ctx, nil)
	switch {
	case err == nil:
		status.Exists = true
		if properties.BlobPublicAccess != nil {
			status.PublicAccess = string(*properties.BlobPublicAccess)
		}
		return status, nil
	case !bloberror.HasCode(err, bloberror.ContainerNotFound):
		return status, fmt.Errorf("read container %s of %s: %w", o.Container, b.locations[0].accountURL(), classifyBlobError(ctx, err))
	case !o.Create:
		return status, nil
	}
	if _, err = b.container.Create(ctx, nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return status, fmt.Errorf("create container %s of %s: %w", o.Container, b.locations[0].accountURL(), classifyBlobError(ctx, err))
	}
	return ContainerStatus{Exists: true, Created: err == nil}, nil
}

// DestroyBlobs deletes the container in o, with all its blobs. existed reports whether the container
// existed.
func DestroyBlobs(ctx context.Context, o BlobOptions) (existed bool, err error) {
	b, err := newBlobs(o)
	if err != nil {
		return false, fmt.Errorf("open blobs: %w", err)
	}
	_, err = b.container.Delete(ctx, nil)
	switch {
	case err == nil:
		return true, nil
	case bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted):
		return false, nil
	}
	return false, fmt.Errorf("delete container %s of %s: %w", o.Container, b.locations[0].accountURL(), classifyBlobError(ctx, err))
}
