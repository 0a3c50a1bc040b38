package ingest

import "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

// read makes out the events of a message, or why it can never be used.
func (l *lane) read(raw *azservicebus.ReceivedMessage) *message {
	const perEvent = 400 // bytes in memory, about; it also keeps a save from becoming very long
	m := &message{ReceivedMessage: raw}
	m.events, m.refused = l.in.decoder.decode(raw)
	m.weight = max(len(raw.Body), perEvent*len(m.events))
	return m
}
