package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/repository/content"
)

// testPrefix is the prefix of the resource names that Destroy may delete.
const testPrefix = "test-"

// Destroy deletes what Provision creates on Azure, including all data, and
// returns the resources. It deletes nothing unless the names of the database,
// the blob containers, and the queues or their namespace begin with testPrefix.
// It does not delete the database itself, which may contain other containers.
func Destroy(ctx context.Context, cfg *config.Config, opts Options) ([]Resource, error) {
	opts.setConnections(cfg)
	defer opts.network.close()
	if err := refuseDestroy(cfg, &opts); err != nil {
		return nil, err
	}
	var all []Resource
	if !cfg.Embedded() {
		found, err := destroyCosmos(ctx, cfg, &opts)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if !cfg.EmbeddedBlob() {
		for _, container := range deployment.Blobs(cfg) {
			all = append(all, destroyBlobs(ctx, cfg, &opts, container.Name))
		}
	}
	if !cfg.EmbeddedBus() {
		found, err := destroyQueues(ctx, cfg, &opts)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, ctx.Err()
}

// refuseDestroy returns an error that names each resource whose name does not
// begin with testPrefix.
func refuseDestroy(cfg *config.Config, opts *Options) error {
	var refused []error
	want := func(key, name string) {
		if !strings.HasPrefix(name, testPrefix) {
			refused = append(refused, fmt.Errorf("%s = %q: nothing was deleted; destroy deletes only what is named %s…", key, name, testPrefix))
		}
	}
	if !cfg.Embedded() {
		want("cosmos.database", cfg.Cosmos.Database)
	}
	if !cfg.EmbeddedBlob() {
		want("blob.container", cfg.Blob.Container)
	}
	if !cfg.EmbeddedBus() {
		_, namespace, err := manageBus(cfg, opts)
		if err != nil {
			return err
		}
		for _, q := range deployment.Queues(cfg) {
			if !strings.HasPrefix(namespace, testPrefix) {
				want("queue of Service Bus", q.Name)
			}
		}
	}
	return errors.Join(refused...)
}

func destroyCosmos(ctx context.Context, cfg *config.Config, opts *Options) ([]Resource, error) {
	connection, err := accountConnection(cfg, opts)
	if err != nil {
		return nil, err
	}
	db, err := client.Connect(connection)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	var all []Resource
	for _, p := range client.New(db, client.Options{Containers: deployment.Containers(), Random: opts.Random}).Destroy(ctx) {
		r := Resource{Service: "cosmos", Kind: p.Kind, Name: p.Name, State: p.State}
		for _, err := range p.Left {
			r.Left = append(r.Left, err.Error())
			r.Commands = []string{fmt.Sprintf("az cosmosdb sql container delete --account-name %s --resource-group %s --database-name %s --name %s",
				accountName(cfg.Cosmos.Endpoint), placeholder, cfg.Cosmos.Database, p.Name)}
		}
		all = append(all, r)
	}
	return all, nil
}

func destroyBlobs(ctx context.Context, cfg *config.Config, opts *Options, name string) Resource {
	r := Resource{Service: "blob", Kind: "container", Name: name, State: client.StateDeleted}
	o, err := blobOptions(cfg, opts, name)
	existed := false
	if err == nil {
		existed, err = content.DestroyBlobs(ctx, o)
	}
	switch {
	case err != nil:
		r.State, r.Left = client.StateUnknown, []string{err.Error()}
		r.Commands = []string{fmt.Sprintf("az storage container delete --account-name %s --name %s", accountName(cfg.Blob.Endpoint), name)}
	case !existed:
		r.State = client.StateMissing
	}
	return r
}

func destroyQueues(ctx context.Context, cfg *config.Config, opts *Options) ([]Resource, error) {
	bus, namespace, err := manageBus(cfg, opts)
	if err != nil {
		return nil, err
	}
	var all []Resource
	for _, q := range deployment.Queues(cfg) {
		r := Resource{Service: "servicebus", Kind: "queue", Name: q.Name, State: client.StateDeleted}
		_, err := bus.DeleteQueue(ctx, q.Name, nil)
		switch {
		case err == nil:
		case busStatus(err) == http.StatusNotFound:
			r.State = client.StateMissing
		default:
			r.State, r.Left = client.StateUnknown, []string{explainBus("delete queue "+q.Name, err)}
			r.Commands = []string{fmt.Sprintf("az servicebus queue delete --namespace-name %s --resource-group %s --name %s", namespace, placeholder, q.Name)}
		}
		all = append(all, r)
	}
	return all, nil
}
