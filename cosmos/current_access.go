package cosmos

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
)

// Reads may be stale, but a write acts on the current document. So a patch that changes nothing returns
// the current document. A patch whose condition is false is never applied, but the status of its reply
// tells whether the document exists.

// changesNothing returns a patch that applies to documents of a kind and changes nothing.
func changesNothing(kind client.DocumentKind, conditions ...string) azcosmos.PatchOperations {
	ops := client.NewPatch(kind, conditions...)
	ops.AppendSet("/kind", kind.Name)
	return ops
}

// documentExists reports whether a document exists now, whatever its format. It writes nothing.
func (c *call) documentExists(ctx context.Context, container *azcosmos.ContainerClient, key, id string) (bool, error) {
	err := c.Patch(ctx, container, key, id, changesNothing(client.DocumentKind{Name: "any"}, "false"), &struct{}{})
	switch {
	case client.IsNotFound(err):
		return false, nil
	case client.StatusOf(err) == http.StatusPreconditionFailed:
		return true, nil
	}
	return err == nil, err
}

// mustExist returns client.ErrStale unless a document exists now.
func (c *call) mustExist(ctx context.Context, container *azcosmos.ContainerClient, key, id string) error {
	there, err := c.documentExists(ctx, container, key, id)
	if err == nil && !there {
		err = client.ErrStale
	}
	return err
}
