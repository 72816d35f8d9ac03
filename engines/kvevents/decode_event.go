package kvevents

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// field is what an element of an event means.
type field uint8

const (
	other field = iota
	tag
	hashes
	parent
	tokenIDs
	blockSize
	loraID
	medium
	loraName
	extraKeys
	group
	spec
	salt
	session
	locality
)

// The array encoding has fields by position, behind the tag.
var (
	storedFields  = [...]field{tag, hashes, parent, tokenIDs, blockSize, loraID, medium, loraName, extraKeys, group, spec}
	removedFields = [...]field{tag, hashes, medium, group}
)

// fieldOf returns the field of the map encoding with a name; others are passed over. Events have many: a table would make small ones a
// third slower.
func fieldOf(name []byte) field {
	switch string(name) {
	case "type":
		return tag
	case "block_hashes":
		return hashes
	case "parent_block_hash":
		return parent
	case "token_ids":
		return tokenIDs
	case "block_size":
		return blockSize
	case "lora_id":
		return loraID
	case "medium":
		return medium
	case "lora_name":
		return loraName
	case "extra_keys":
		return extraKeys
	case "group_idx":
		return group
	case "kv_cache_spec_kind":
		return spec
	case "cache_salt":
		return salt
	case "session_id":
		return session
	case "locality":
		return locality
	}
	return other
}

// kindOf returns the kind with a tag, 0 if it is not known.
func kindOf(tag []byte) Kind {
	switch string(tag) {
	case "BlockStored":
		return Stored
	case "BlockRemoved":
		return Removed
	case "AllBlocksCleared":
		return Cleared
	}
	return 0
}

// event reads one event of either encoding and appends it to the batch if its type is known. After an error what it
// had put into the buffers is taken back.
func (d *Decoder) event(b []byte) (rest []byte, err error) {
	nh, nt, nx := len(d.hashes), len(d.tokens), len(d.extra)
	var ev Event
	if msgp.NextType(b) == msgp.ArrayType {
		rest, err = d.arrayEvent(&ev, b)
	} else {
		rest, err = d.mapEvent(&ev, b)
	}
	if err == nil && ev.Kind == Stored && ev.BlockSize == 0 && len(ev.Tokens) > 0 {
		err = errors.New("block_size is missing")
	}
	if err == nil && ev.Kind != 0 {
		d.batch.Events = append(d.batch.Events, ev)
		return rest, nil
	}
	d.hashes, d.tokens, d.extra = d.hashes[:nh], d.tokens[:nt], d.extra[:nx]
	if err == nil {
		d.batch.Unknown++
	}
	return rest, err
}

func (d *Decoder) arrayEvent(ev *Event, b []byte) ([]byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return b, err
	}
	var fields []field
	for i := range n {
		f := other
		if i == 0 {
			f = tag
		} else if int(i) < len(fields) {
			f = fields[i]
		}
		if b, err = d.field(ev, f, b); err != nil {
			return b, err
		}
		switch {
		case i == 0 && ev.Kind == Stored:
			fields = storedFields[:]
		case i == 0 && ev.Kind == Removed:
			fields = removedFields[:]
		}
	}
	return b, nil
}

func (d *Decoder) mapEvent(ev *Event, b []byte) ([]byte, error) {
	n, b, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return b, err
	}
	for range n {
		var key []byte
		if key, b, err = msgp.ReadMapKeyZC(b); err != nil {
			return b, err
		}
		if b, err = d.field(ev, fieldOf(key), b); err != nil {
			return b, err
		}
	}
	return b, nil
}

// field reads one element. Nil is the absence of a value, whatever the field.
func (d *Decoder) field(ev *Event, f field, b []byte) (rest []byte, err error) {
	if f == other {
		return skip(b)
	}
	if msgp.IsNil(b) {
		return b[1:], nil
	}
	switch f {
	case tag:
		var v []byte
		v, rest, err = msgp.ReadStringZC(b)
		ev.Kind = kindOf(v)
	case hashes:
		ev.Hashes, rest, err = d.readHashes(b)
	case parent:
		ev.Parent, rest, err = readHash(b)
	case tokenIDs:
		ev.Tokens, ev.Bigram, rest, err = d.readTokens(b)
	case blockSize:
		ev.BlockSize, rest, err = readSize(b)
	case loraID:
		rest, err = d.readLoRAID(ev, b)
	case medium:
		ev.Medium, rest, err = d.readName(b)
	case loraName:
		ev.LoRA, rest, err = d.readName(b)
	case extraKeys:
		ev.Extra, rest, err = d.readExtra(b)
	case group:
		ev.Group, rest, err = msgp.ReadIntBytes(b)
	case spec:
		ev.Spec, rest, err = d.readName(b)
	case salt:
		ev.Salt, rest, err = msgp.ReadStringZC(b)
	case session:
		ev.Session, rest, err = msgp.ReadStringZC(b)
	case locality:
		ev.Locality, rest, err = d.readName(b)
	}
	return rest, err
}

// maxBlock bounds a block's size in tokens: hybrid models reach hundreds.
const maxBlock = 1 << 20

func readSize(b []byte) (int, []byte, error) {
	v, o, err := msgp.ReadInt64Bytes(b)
	if err == nil && (v <= 0 || v > maxBlock) {
		err = fmt.Errorf("block_size %d, want 1 to %d", v, maxBlock)
	}
	return int(v), o, err
}

// readLoRAID uses the number only where no name came before it: releases send either, or the name behind the number.
func (d *Decoder) readLoRAID(ev *Event, b []byte) ([]byte, error) {
	v, o, err := msgp.ReadInt64Bytes(b)
	if err == nil && ev.LoRA == "" {
		ev.LoRA = d.name(strconv.AppendInt(nil, v, 10))
	}
	return o, err
}

// readName reads a string of which there are few, and returns the same string each time.
func (d *Decoder) readName(b []byte) (string, []byte, error) {
	v, o, err := msgp.ReadStringZC(b)
	if err != nil {
		return "", b, err
	}
	return d.name(v), o, nil
}

const maxNames = 1024

func (d *Decoder) name(v []byte) string {
	if s, ok := d.names[string(v)]; ok {
		return s
	}
	s := string(v)
	if d.names == nil {
		d.names = make(map[string]string)
	}
	if len(d.names) < maxNames && len(v) <= 256 {
		d.names[s] = s
	}
	return s
}
