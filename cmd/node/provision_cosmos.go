package node

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/client"
)

func provisionCosmos(ctx context.Context, cfg *config.Config, po ProvisionOptions, opts *Options) ([]Resource, error) {
	connection, err := accountConnection(cfg, opts)
	if err != nil {
		return nil, err
	}
	db, err := client.Connect(connection)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	found, err := client.New(db, client.Options{Containers: deployment.Containers(), Random: opts.Random}).Provision(ctx, client.ProvisionOptions{
		CheckOnly: po.CheckOnly, Repair: true, NarrowIndex: po.NarrowIndex, Throughput: po.Throughput,
	})
	if err != nil {
		return nil, err
	}
	all := make([]Resource, len(found))
	for i := range found {
		f := &found[i]
		all[i] = Resource{Service: "cosmos", Kind: f.Kind, Name: f.Name, State: f.State, Changes: f.Changes, Notes: f.Notes}
		for _, err := range f.Left {
			all[i].Left = append(all[i].Left, err.Error())
		}
		all[i].Commands = cosmosCommands(cfg, f)
	}
	return all, nil
}

// cosmosCommands returns Azure CLI commands that create or correct a resource
// of the Cosmos account.
func cosmosCommands(cfg *config.Config, p *client.Provisioned) []string {
	account := accountName(cfg.Cosmos.Endpoint)
	where := fmt.Sprintf("--account-name %s --resource-group %s", account, placeholder)
	if p.Spec == nil {
		if p.State == client.StateMissing || p.State == client.StateUnknown {
			return []string{fmt.Sprintf("az cosmosdb sql database create %s --name %s", where, p.Name)}
		}
		return nil
	}
	where = fmt.Sprintf("%s --database-name %s", where, cfg.Cosmos.Database)
	create := fmt.Sprintf("az cosmosdb sql container create %s %s", where, deployment.ContainerArguments(p.Spec))
	where += " --name " + p.Name
	switch p.State {
	case client.StateMissing, client.StateUnknown:
		return []string{create}
	case client.StateWrong:
		return []string{fmt.Sprintf("az cosmosdb sql container update %s --ttl -1 --idx '%s'", where, p.Spec.IndexingPolicy())}
	case client.StateUnfit:
		return []string{fmt.Sprintf("az cosmosdb sql container delete %s   # deletes what it holds", where), create}
	default:
		return nil
	}
}

// accountName returns the name of the account or namespace that an endpoint
// belongs to, which is part of the host name. It returns a placeholder if the
// endpoint is not on Azure.
func accountName(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || net.ParseIP(u.Hostname()) != nil {
		return "ACCOUNT"
	}
	name, zone, _ := strings.Cut(u.Hostname(), ".")
	if zone == "" {
		return "ACCOUNT"
	}
	return name
}
