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

// busVariable is the environment variable that specifies the default namespace
// of a domain. If it is not set, the default is the bus of a local hub.
const busVariable = "MESSAGEHUB_SERVICEBUS_CONNECTION"

const defaultBus = "Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=" + embedded.WellKnownKeyName +
	";SharedAccessKey=" + embedded.WellKnownKey + ";UseDevelopmentEmulator=true"

// A busPlace specifies a namespace, and how to connect to it.
type busPlace struct {
	name    string // name of the namespace; contains no secret
	dial    string // HOST:PORT of an emulator; "" if the namespace is on Azure
	connect domainclient.Connect
}

// bus parses a connection string, or the name of a namespace on Azure, for
// which the machine's identity is used. An empty text or "default" stands for
// the namespace in busVariable or, if it is not set, for the bus of a local
// hub.
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
			return busPlace{}, fmt.Errorf("want a connection string (Endpoint=sb://…) or the name of a namespace such as example.servicebus.windows.net, got %q", terminal.Clip(text, 20)) // shortened, because the text may contain a key
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
	if _, err := connect(); err != nil { // connect only parses; it opens no connection
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

// connectionMember returns a named value of a connection string.
func connectionMember(connection, name string) (string, bool) {
	for part := range strings.SplitSeq(connection, ";") {
		if key, value, ok := strings.Cut(part, "="); ok && strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// checkReachable fails if no process listens at an emulator's address. Without
// it, Microsoft's client would retry for some time before it reports the closed
// port.
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
