package amqpframe

import (
	"encoding/binary"
	"fmt"
)

var performatives = map[byte]string{
	0x10: "open", 0x11: "begin", 0x12: "attach", 0x13: "flow", 0x14: "transfer", 0x15: "disposition",
	0x16: "detach", 0x17: "end", 0x18: "close",
	0x40: "mechanisms", 0x41: "init", 0x44: "outcome",
}

// Names returns the names of the frames in a chunk of a connection.
func Names(chunk []byte) string {
	text := ""
	for len(chunk) >= headerSize {
		if string(chunk[:4]) == "AMQP" {
			text, chunk = text+"header ", chunk[headerSize:]
			continue
		}
		size := int(binary.BigEndian.Uint32(chunk))
		if size < headerSize || size > len(chunk) {
			return text + "a part of a frame"
		}
		name := "empty"
		if body := chunk[min(4*int(chunk[4]), size):size]; len(body) > 2 && body[0] == 0 {
			if name = performatives[body[2]]; name == "" {
				name = fmt.Sprintf("frame %#x", body[2])
			}
		}
		text, chunk = text+name+" ", chunk[size:]
	}
	if len(chunk) > 0 {
		return text + "a part of a frame"
	}
	return text[:max(len(text)-1, 0)]
}
