// Package servicebus is the Service Bus edge of the message hub: it takes what
// domains announce, asks them for content and tells them what arrived, in the words
// of package contract. It decides nothing about events or bundles.
//
// # What a message says
//
// A decoder reads an announcement in any form that package contract names
// (decode.go; decode_contract.go has the original's, package eventjson those in
// JSON). It takes a message whole or rejects it whole: a rejection is a reason and a
// description that go with the message to the dead letters, where an operator sees
// what is wrong and where, and no payload. The reasons stand in rejection.go. Trouble
// that may pass is never a rejection.
package servicebus
