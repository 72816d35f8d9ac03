package prefixdiff

// Cause says why the prefix of a prompt is not the earlier one's.
type Cause string

// The causes that are seen in the requests alone.
const (
	Clock         Cause = "clock"          // a time or a date
	RandomID      Cause = "random-id"      // an identifier that is new each time
	MapOrder      Cause = "map-order"      // members of an object, or lines, in another order
	ToolOrder     Cause = "tool-order"     // tools in another order
	ToolSet       Cause = "tool-set"       // a tool is there, gone or changed
	EditedHistory Cause = "edited-history" // an earlier message was changed, removed or inserted
	DocumentOrder Cause = "document-order" // documents in another order
	Counter       Cause = "counter"        // a number, such as that of the turn
	UserName      Cause = "user-name"      // a name or an address of a user
	Template      Cause = "template"       // other words of the instructions
	WhiteSpace    Cause = "whitespace"     // white space alone
	Image         Cause = "image"          // a picture that is not the same bytes
	Model         Cause = "model"          // another model
	Salt          Cause = "salt"           // a cache salt or key
	Other         Cause = "other"
)

// The causes that only the engine can show, see [Seen].
const (
	BelowBlock Cause = "below-block" // what prompts share is shorter than a block of the cache
	Evicted    Cause = "evicted"     // the engine reported that it removed the prefix
	Replica    Cause = "replica"     // the earlier request went to another replica
)

// Causes returns all causes.
func Causes() []Cause {
	return []Cause{
		Clock, RandomID, MapOrder, ToolOrder, ToolSet, EditedHistory, DocumentOrder, Counter, UserName, Template, WhiteSpace, Image, Model, Salt,
		BelowBlock, Evicted, Replica, Other,
	}
}
