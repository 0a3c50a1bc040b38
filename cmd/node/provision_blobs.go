package node

import (
	"context"
	"fmt"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/repository/content"
)

func provisionBlobs(ctx context.Context, cfg *config.Config, po ProvisionOptions, opts *Options, name string) (Resource, error) {
	r := Resource{Service: "blob", Kind: "container", Name: name, State: client.StateOK}
	o, err := blobOptions(cfg, opts, name)
	if err != nil {
		return r, err
	}
	o.Create = !po.CheckOnly
	status, err := content.ProvisionBlobs(ctx, o)
	where := fmt.Sprintf("--account-name %s --name %s", accountName(cfg.Blob.Endpoint), name)
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err != nil:
		r.State, r.Left = client.StateUnknown, []string{err.Error()}
		r.Commands = []string{"az storage container create " + where}
	case !status.Exists:
		r.State, r.Left = client.StateMissing, []string{"container " + name + " does not exist"}
		r.Commands = []string{"az storage container create " + where}
	case status.Created:
		r.State = client.StateCreated
	case status.PublicAccess != "":
		r.State, r.Left = client.StateWrong, []string{fmt.Sprintf("container %s can be read by anyone (public access: %s)", name, status.PublicAccess)}
		r.Commands = []string{"az storage container set-permission --public-access off " + where}
	}
	return r, nil
}
