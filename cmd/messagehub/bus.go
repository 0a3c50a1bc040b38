package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// Where a domain finds the Service Bus namespace by default: in the environment, or else where
// messagehub serve opens its own.
const busVariable = "MESSAGEHUB_SERVICEBUS_CONNECTION"

const defaultBus = "Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=" + embedded.WellKnownKeyName +
	";SharedAccessKey=" + embedded.WellKnownKey + ";UseDevelopmentEmulator=true"

// A busPlace is where a namespace is.
type busPlace struct {
	name    string // without secrets
	dial    string // HOST:PORT of an emulator; "" for Azure
	connect domainclient.Connect
}

// bus reads a connection string, or the name of a namespace on Azure, which is
// entered with the identity of the machine. Blank, or the word default,
// means the environment, or else the bus of a hub on this machine.
func (p *process) bus(text string) (busPlace, error) {
	if text == "default" {
		text = ""
	}
	secured, err := p.access.tlsConfig()
	if err != nil {
		return busPlace{}, err
	}
	text = cmp.Or(text, p.variable(busVariable), defaultBus)
	endpoint, isConnection := connectionMember(text, "Endpoint")
	if !isConnection {
		if strings.ContainsAny(text, "=;/ ") || !strings.Contains(text, ".") {
			return busPlace{}, fmt.Errorf("want a connection string (Endpoint=sb://…) or the name of a namespace such as example.servicebus.windows.net, got %q", terminal.Clip(text, 20)) // it may be a key
		}
		return busPlace{name: text, connect: func() (*azservicebus.Client, error) {
			credential, err := azidentity.NewDefaultAzureCredential(nil)
			if err != nil {
				return nil, err
			}
			return azservicebus.NewClient(text, credential, &azservicebus.ClientOptions{TLSConfig: secured})
		}}, nil
	}
	connect := domainclient.ConnectionStringWithTLS(text, secured)
	if _, err := connect(); err != nil { // which makes no connection yet
		return busPlace{}, fmt.Errorf("the connection string of the bus: %w", err)
	}
	place := busPlace{name: strings.Trim(strings.TrimPrefix(endpoint, "sb://"), "/"), connect: connect}
	if emulator, _ := connectionMember(text, "UseDevelopmentEmulator"); strings.EqualFold(emulator, "true") {
		place.dial = place.name
		if _, _, err := net.SplitHostPort(place.dial); err != nil {
			place.dial = net.JoinHostPort(place.dial, "5672")
		}
	}
	return place, nil
}

// connectionMember returns a value of a connection string.
func connectionMember(connection, name string) (string, bool) {
	for part := range strings.SplitSeq(connection, ";") {
		if key, value, ok := strings.Cut(part, "="); ok && strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// checkReachable fails at once unless a process listens where an emulator should be: Microsoft's
// client would try for a while before it says so.
func (b *busPlace) checkReachable(ctx context.Context) error {
	if b.dial == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.dial)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no Service Bus listens at %s; start messagehub serve, or name another with --servicebus=CONNECTION or %s", b.dial, busVariable)
	}
	if err != nil {
		return fmt.Errorf("no answer from the Service Bus at %s: %w", b.dial, err)
	}
	return conn.Close()
}
