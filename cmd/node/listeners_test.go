package node_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// Keys of the embedded bus and the embedded exchange.
var (
	ownBusKey      = base64.StdEncoding.EncodeToString([]byte("the key of the bus of a test, 32+ bytes"))
	ownExchangeKey = base64.StdEncoding.EncodeToString([]byte("the key of the exchange of a test, 32+"))
)

func TestListenersForDomains_WithOwnKeysNeedTLS(t *testing.T) {
	const queue = "charges-events"
	ca := newAuthority(t)
	cfg := settings("")
	cfg.TLS = serverFiles(t, ca)
	cfg.BusListen, cfg.BlobListen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Bus.Key, cfg.Exchange.Key = config.Secret(ownBusKey), config.Secret(ownExchangeKey)
	cfg.Domains = config.Domains{{Name: domain.Charges, Ingest: queue}}
	n, stop := start(t, cfg, node.Options{})

	trust := &tls.Config{RootCAs: ca.pool(), MinVersion: tls.VersionTLS12}
	bus := func(key string) *azservicebus.Client {
		text := "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=" + key
		client, err := azservicebus.NewClientFromConnectionString(text, &azservicebus.ClientOptions{
			CustomEndpoint: n.BusAddr().String(), // set because the client would treat a port in Endpoint as part of the host name
			TLSConfig:      trust, RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close(context.Background()) })
		return client
	}
	send := func(client *azservicebus.Client, origin string) error {
		sender, err := client.NewSender(queue, nil)
		require.NoError(t, err)
		const body = `{"id":"7a1c1b6e-0d39-4a55-8f0e-0d6f5f5f9a01","recipient":"5790001330552","origin":%q,"contentType":"c","documentType":"d","supportsBundling":true,"weight":1}`
		return sender.SendMessage(t.Context(), &azservicebus.Message{
			Body: fmt.Appendf(nil, body, origin), ContentType: to.Ptr("application/json"), SessionID: to.Ptr("5790001330552"),
		}, nil)
	}
	own := bus(ownBusKey)
	require.NoError(t, send(own, "TimeSeries"))
	require.NoError(t, send(own, "Charges"))
	require.Eventually(t, func() bool {
		return getOver(t, ca.client(), n.URL()+"/v1/peek").StatusCode == http.StatusOK
	}, 10*time.Second, 20*time.Millisecond)
	dead, err := own.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	require.NoError(t, err)
	letters, err := dead.ReceiveMessages(t.Context(), 1, nil)
	require.NoError(t, err)
	require.Equal(t, "wrong-origin", *letters[0].DeadLetterReason)
	var refused *azservicebus.Error
	require.ErrorAs(t, send(bus("SAS_KEY_VALUE"), "Charges"), &refused)
	require.Equal(t, azservicebus.CodeUnauthorizedAccess, refused.Code)

	plain, err := new(net.Dialer).DialContext(t.Context(), "tcp", n.BusAddr().String())
	require.NoError(t, err)
	defer plain.Close()
	_, err = plain.Write([]byte("AMQP\x03\x01\x00\x00"))
	require.NoError(t, err)
	read, err := plain.Read(make([]byte, 1))
	require.Zero(t, read)
	require.Error(t, err, "it is closed without an answer")

	exchange := func(key string) error {
		credential, err := azblob.NewSharedKeyCredential("devstoreaccount1", key)
		require.NoError(t, err)
		transport := ca.client()
		t.Cleanup(transport.CloseIdleConnections)
		client, err := azblob.NewClientWithSharedKeyCredential("https://"+n.BlobAddr().String()+"/devstoreaccount1", credential,
			&azblob.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}, Retry: policy.RetryOptions{MaxRetries: -1}}})
		require.NoError(t, err)
		_, err = client.UploadBuffer(t.Context(), cfg.Blob.ExchangeContainer(), "made", []byte("content"), nil)
		return err
	}
	require.NoError(t, exchange(ownExchangeKey))
	require.ErrorContains(t, exchange(ownBusKey), "AuthenticationFailed")
	require.NoError(t, own.Close(t.Context()))
	require.NoError(t, stop())
}
