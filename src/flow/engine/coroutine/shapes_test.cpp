// Awaits in every shape that g++ 12 compiles rightly, counted: each value is destroyed exactly
// once.
//
// The shapes it gets wrong are refused by the compiler or found by the house rules. A change of
// compiler that breaks one of these is noticed here without a sanitizer.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests::shapes {

// Owns memory and counts itself: a value destroyed twice takes the count below zero.
class Counted {
public:
    Counted() : Counted(std::string(40, 'x')) {}
    explicit Counted(std::string text) : text_(std::make_unique<std::string>(std::move(text))) {
        ++alive;
    }
    Counted(const Counted& other) : Counted(other.text()) {}
    Counted(Counted&& other) noexcept : text_(std::move(other.text_)) { ++alive; }
    Counted& operator=(const Counted& other) {
        text_ = std::make_unique<std::string>(other.text());
        return *this;
    }
    Counted& operator=(Counted&& other) noexcept = default;
    ~Counted() { --alive; }

    [[nodiscard]] std::string text() const { return text_ ? *text_ : ""; }
    static inline int alive = 0;

private:
    std::unique_ptr<std::string> text_;
};

// An aggregate with a member that owns memory: what g++ 12 destroys twice as a temporary of an
// await.
struct Order {
    Counted item;
    int count = 0;
};

Order pack(Order order);
Order stamp(Order order, std::string with);

}  // namespace holdfast::flow::tests::shapes

template <>
struct holdfast::flow::Codec<holdfast::flow::tests::shapes::Order> {
    using Order = holdfast::flow::tests::shapes::Order;
    static std::string encode(const Order& order) { return quote(order.item.text()); }
    static Order decode(std::string_view json) {
        return Order{holdfast::flow::tests::shapes::Counted(Codec<std::string>::decode(json)), 1};
    }
};
HOLDFAST_NAME(holdfast::flow::tests::shapes::pack, "pack");
HOLDFAST_NAME(holdfast::flow::tests::shapes::stamp, "stamp");

namespace holdfast::flow::tests::shapes {
namespace {

Order make_order(const std::string& text) {
    return Order{Counted(text), 1};
}

Task<Order> passes_through(Context& ctx, Order order) {
    Order packed = co_await ctx.activity<&pack>(order);
    co_return packed;
}
// An activity does not take a moved aggregate: by its type it cannot be told from a temporary.
Workflow<Order> named_and_moved(Context& ctx) {
    Order order{Counted("named"), 2};
    Order packed = co_await ctx.activity<&pack>(order);
    Order again_packed = co_await passes_through(ctx, std::move(order));
    packed.item = again_packed.item;
    co_return packed;
}
Workflow<Order> operation_in_a_line_before(Context& ctx) {
    Order order = make_order("of a function");
    auto operation = ctx.activity<&pack>(order);
    Order packed = co_await operation;
    co_return packed;
}
Workflow<Order> temporary_strings(Context& ctx) {
    const Order order{Counted("const"), 2};
    const std::string with(50, 'w');
    Order first = co_await ctx.activity<&stamp>(order, with + "plus");
    Order second = co_await ctx.activity<&stamp>(first, std::string(60, 's'))
                       .tag("tag of some length, longer than a small string")
                       .retry({.attempts = 4});
    co_return second;
}
Workflow<Order> choices_of_numbers_and_names(Context& ctx, bool flag) {
    Order ann{Counted("ann"), 1};
    Order bob{Counted("bob"), 2};
    co_await ctx.sleep(flag ? 1s : 2s);
    Order packed = co_await ctx.activity<&pack>(flag ? ann : bob);
    co_return flag ? packed : bob;
}
Workflow<Order> returns_an_aggregate(Context& ctx) {
    co_await ctx.sleep(1s);
    co_return Order{Counted("made while returning"), 1};
}
Workflow<Order> loops_over_an_await(Context& ctx) {
    std::vector<Op<Order>> branches;
    for (int i = 0; i < 3; ++i) {
        Order order = make_order("item");
        branches.push_back(ctx.activity<&pack>(order));
    }
    Order last;
    for (Order& packed : co_await all(std::move(branches))) {
        last = std::move(packed);
    }
    co_return last;
}
Task<bool> is_ready(Context& ctx) {
    co_await ctx.sleep(1s);
    co_return true;
}
Workflow<Order> awaits_in_a_condition(Context& ctx, bool flag) {
    Order order{Counted("condition"), 1};
    if (flag && co_await is_ready(ctx)) {
        order.count = 2;
    }
    co_return order;
}
Workflow<Order> binds_the_parts(Context& ctx) {
    Order order{Counted("parts"), 1};
    auto [first, second] = co_await all(ctx.activity<&pack>(order), ctx.activity<&pack>(order));
    first.item = second.item;
    co_return first;
}
Workflow<Order> tasks_with_parameters(Context& ctx) {
    Order order{Counted("parameter"), 1};
    Order through = co_await passes_through(ctx, order);
    auto first = co_await any(passes_through(ctx, through), ctx.sleep(1h));
    co_return std::get<0>(std::move(first));
}
Workflow<Order> throws_and_catches(Context& ctx) {
    Order order{Counted("caught"), 1};
    try {
        Counted inner;
        co_await ctx.activity<&pack>(order);
    } catch (const Failure& failure) {
        order.item = Counted(failure.what());
    }
    co_return order;
}

// Plays the program to its end, answering whatever is asked; afterwards nothing is alive or dead
// twice.
void play(detail::Program code, const char* input) {
    ASSERT_EQ(Counted::alive, 0);
    {
        Script s(code, input);
        s.turn();
        while (s.ending() == Ending::none) {
            std::vector<Message> answers;
            for (const EventId id : s.activities()) {
                answers.push_back(done(id, quote("answered")));
            }
            for (const auto& [id, at] : s.last().timers) {
                if (at < 60'000) {
                    answers.push_back(fired(id));
                }
            }
            ASSERT_FALSE(answers.empty());
            s.turn(answers);
        }
        EXPECT_EQ(s.ending(), Ending::completed) << s.output();
    }
    EXPECT_EQ(Counted::alive, 0);
}

TEST(CoroutineShapes, EveryValueIsDestroyedOnce) {
    play(program<&named_and_moved>(), "[]");
    play(program<&operation_in_a_line_before>(), "[]");
    play(program<&temporary_strings>(), "[]");
    play(program<&choices_of_numbers_and_names>(), "[true]");
    play(program<&choices_of_numbers_and_names>(), "[false]");
    play(program<&returns_an_aggregate>(), "[]");
    play(program<&loops_over_an_await>(), "[]");
    play(program<&awaits_in_a_condition>(), "[true]");
    play(program<&awaits_in_a_condition>(), "[false]");
    play(program<&binds_the_parts>(), "[]");
    play(program<&tasks_with_parameters>(), "[]");
    play(program<&throws_and_catches>(), "[]");
}

// --- destroyed while suspended

Workflow<Unit> suspended_in(Context& ctx, int where) {
    Counted local;
    Order order{Counted("suspended"), 1};
    const std::vector<int> items{1, 2, 3};
    Saga saga{ctx};
    saga.push<&undo>(1);
    switch (where) {
        case 0:
            co_await ctx.activity<&pack>(order);
            break;
        case 1:
            co_await ctx.activity<&pack>(order).retry({.attempts = 3}).timeout(1h);
            break;
        case 2:
            co_await all(passes_through(ctx, order), ctx.sleep(1h), ctx.receive(inbox));
            break;
        case 3:
            co_await any(passes_through(ctx, order), ctx.activity<&pack>(order));
            break;
        case 4:
            co_await map(ctx, items, 2, [](Context& c, const int& i) {
                return passes_through(c, make_order(std::to_string(i)));
            });
            break;
        case 5:
            co_await saga.unwind();
            break;
        case 6: {
            const Shield shield = ctx.shield();
            auto handle = ctx.start(ctx.activity<&pack>(order).retry({.attempts = 3}));
            co_await any(handle.ref(), ctx.await_signal(go));
            break;
        }
        default: {
            auto handle = ctx.start(ctx.activity<&pack>(order));
            co_await passes_through(ctx, order);
            break;
        }
    }
    co_return Unit{};
}

TEST(CoroutineShapes, AnExecutionIsDestroyedWhereverItWaits) {
    for (int where = 0; where < 8; ++where) {
        ASSERT_EQ(Counted::alive, 0);
        {
            Execution execution("order-7", 1, program<&suspended_in>());
            execution.begin(start("[" + std::to_string(where) + "]"));
            const Turn turn = execution.turn(Moment{1000ms}, {});
            EXPECT_EQ(turn.ending, Ending::none) << where;
        }
        EXPECT_EQ(Counted::alive, 0) << where;
    }
}

// Cancelled, refused and thrown away at each of these points, too.
TEST(CoroutineShapes, AnExecutionIsCancelledWhereverItWaits) {
    for (int where = 0; where < 8; ++where) {
        ASSERT_EQ(Counted::alive, 0);
        {
            Script s(program<&suspended_in>(), "[" + std::to_string(where) + "]");
            s.turn();
            s.turn(cancel("stop"));
            const bool shielded = where == 5 || where == 6;
            EXPECT_EQ(s.ending(), shielded ? Ending::none : Ending::cancelled) << where;
            if (shielded) {
                s.turn(terminate("now"));
                EXPECT_EQ(s.ending(), Ending::cancelled) << where;
            }
        }
        EXPECT_EQ(Counted::alive, 0) << where;
    }
}

}  // namespace
}  // namespace holdfast::flow::tests::shapes
