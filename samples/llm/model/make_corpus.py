#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The training text of tiny-llama: short children's stories in simple English.
#
# All of the text in this file, and so everything that it generates, was written for the warmgraph
# project and is licensed under Apache-2.0, like the project itself. Nothing is copied from elsewhere.
#
# usage: make_corpus.py [OUTPUT]        (default: corpus.txt beside this file)
#
# Format of the output: one story per line, ASCII only, every line ends with "The end.\n". So a newline
# is the model's end-of-story token, and a story never holds one.
"""Writes the training text of tiny-llama: a grammar of small plots, plus a few hand-written stories."""

import random
import sys
from dataclasses import dataclass
from pathlib import Path

SEED = 20261120
TARGET_BYTES = 640_000
# Most stories fit the model's context of 256 tokens (bytes), so that it learns to end them.
SHORT_SHARE = 0.75
SHORT_LIMIT = 246


@dataclass(frozen=True)
class Kind:
    """A kind of creature, with its home, food and movement."""

    noun: str
    home: str
    food: str
    moves: str  # past tense: how it moves somewhere


@dataclass(frozen=True)
class Person:
    name: str
    he: str
    him: str
    his: str


KINDS = [
    Kind("fox", "a cosy den under the oak tree", "blackberries", "trotted"),
    Kind("rabbit", "a warm burrow on the hill", "carrots", "hopped"),
    Kind("mouse", "a tiny house behind the barn", "cheese", "scurried"),
    Kind("bear", "a quiet cave in the woods", "honey", "padded"),
    Kind("squirrel", "a hollow tree in the forest", "nuts", "dashed"),
    Kind("hedgehog", "a soft pile of leaves", "mushrooms", "scuttled"),
    Kind("duck", "a round nest by the pond", "green peas", "waddled"),
    Kind("kitten", "a little cottage by the sea", "fish", "skipped"),
    Kind("owl", "the old church tower", "plum cake", "flew"),
    Kind("frog", "a pond full of lilies", "sweet corn", "jumped"),
    Kind("puppy", "a red barn near the village", "biscuits", "ran"),
    Kind("girl", "a small house by the river", "apple pie", "ran"),
    Kind("boy", "a small house at the edge of the village", "warm bread", "ran"),
    Kind("lamb", "a green field with a white fence", "clover", "skipped"),
    Kind("turtle", "a sunny garden by the lake", "lettuce", "crawled"),
    Kind("otter", "a bend of the silver river", "clams", "slid"),
]

PEOPLE = [
    Person(name, *pronouns)
    for pronouns, names in (
        (("he", "him", "his"), "Pip Tom Oliver Max Finn Ben Hugo Leo Otto Sam".split()),
        (("she", "her", "her"), "Lily Mila Rosie Anna Daisy Nora Ella Poppy Ivy Bella".split()),
    )
    for name in names
]

ADJECTIVES = ["little", "brave", "small", "young", "curious", "kind", "cheerful", "clever", "shy"]
PLACES = ["the forest", "the meadow", "the garden", "the village", "the valley", "the orchard"]
SKIES = ["sunny", "bright", "cold", "quiet", "windy", "warm"]
TIMES = ["morning", "day", "afternoon", "evening"]

# Columns: thing, place, obstacle, helper, way of helping
# and last the kinds of hero for which it would not be an obstacle.
QUESTS = [
    ("a red apple", "at the top of the tall tree", "the branch was too high", "bird",
     "flew up and dropped the apple at {his} feet", "owl duck squirrel"),
    ("the silver bell", "at the bottom of the pond", "{he} could not swim", "frog",
     "dived down and brought up the bell", "frog duck otter turtle"),
    ("the moon flower", "deep inside the cave", "it was too dark to see", "firefly",
     "lit the way with a tiny golden light", "owl"),
    ("a golden feather", "on the other side of the river", "the water was too deep", "turtle",
     "carried {him} across on its broad back", "turtle frog duck otter owl"),
    ("a shiny blue stone", "at the top of the hill", "the path was too steep", "goat",
     "showed {him} an easy way up", "owl duck"),
    ("the lost balloon", "in the middle of the thorn bush", "the thorns were too sharp", "mouse",
     "crept in and pulled the balloon out", "mouse hedgehog"),
    ("the biggest pumpkin", "in the far field", "it was too heavy", "horse",
     "pulled the pumpkin all the way home", "bear"),
    ("the magic acorn", "under the deep snow", "the ground was too hard", "mole",
     "dug a hole and found the acorn", "rabbit squirrel"),
    ("the sweet honey", "high up in the hollow tree", "the bees were too angry", "bear",
     "sang a soft song until the bees were calm", "bear"),
    ("a white shell", "on a rock in the sea", "the waves were too big", "seal",
     "swam out and brought back the shell", "duck otter frog turtle owl"),
]

# Columns: thing, place where it is found.
LOST_THINGS = [
    ("red scarf", "under the bed"), ("blue ball", "behind the barn"),
    ("yellow hat", "on the head of the scarecrow"), ("little bell", "in the tall grass"),
    ("wooden boat", "between two stones in the river"), ("silver key", "inside the teapot"),
    ("teddy bear", "in the basket with the clean clothes"), ("story book", "under the apple tree"),
    ("green mitten", "on a branch of the old oak"), ("tin drum", "beside the garden gate"),
]

# Columns: fear, the friend's words, help.
FEARS = [
    ("the dark", "Look up, the stars are watching over us", "looked up and counted the stars"),
    ("the thunder", "The clouds are only playing their drums", "drummed along until the storm was over"),
    ("deep water", "Hold my hand and kick your feet", "kicked and splashed and began to swim"),
    ("the high bridge", "Do not look down, look at me", "took one small step and then another"),
    ("the wind", "The wind only wants to dance", "spread out {his} arms and danced with the wind"),
    ("the old well", "It is only your own voice down there", "called hello, and the well called hello back"),
]

# Columns: seed, plant, use.
SEEDS = [
    ("a tiny seed", "a tall sunflower", "nodded over the fence"),
    ("a brown seed", "a round pumpkin", "was as big as a chair"),
    ("an apple seed", "a young apple tree", "gave shade to everyone"),
    ("a green bean", "a long bean plant", "climbed up to the window"),
    ("a black seed", "a red poppy", "shone like a small fire"),
    ("a rose seed", "a pink rose", "smelled as sweet as summer"),
]

# Columns: work, material, problem, use at the end.
WORKS = [
    ("a boat", "bark and leaves", "it began to sink", "sailed across the pond together"),
    ("a kite", "paper and string", "the wind tore it", "watched the kite dance in the sky"),
    ("a tree house", "old boards", "the roof fell down", "drank tea high above the ground"),
    ("a snowman", "fresh white snow", "its head rolled away", "gave the snowman a hat and a carrot nose"),
    ("a bridge", "sticks and stones", "the stream washed it away", "walked over the stream with dry feet"),
    ("a sand castle", "sand and shells", "a wave knocked it over", "put a bright flag on the highest tower"),
]

# Columns: lost young animal, its mother.
YOUNG_ONES = [
    ("a yellow chick", "the hen"), ("a fluffy duckling", "the duck"), ("a tiny kitten", "the cat"),
    ("a white lamb", "the sheep"), ("a small puppy", "the dog"), ("a baby bird", "the robin"),
]

GIFTS = ["a warm blanket", "a round pebble", "a string of daisies", "a paper star", "a soft feather"]
TOYS = ["the red ball", "the wooden train", "the swing", "the spinning top", "the toy drum"]
VISITORS = ["an ant", "a mouse", "a sparrow", "a rabbit", "a hedgehog", "a fox"]
LESSONS = ["a good friend is better than gold", "it is good to share", "kind words cost nothing",
           "even small ones can do great things", "together everything is easier"]


def with_article(words):
    return ("an " if words[0] in "aeiou" else "a ") + words


def fits(person, kind):
    return person.he == {"girl": "she", "boy": "he"}.get(kind.noun, person.he)


class Teller:
    """Collects the sentences of one story; `words` are the names for its templates."""

    def __init__(self, rng, is_long):
        self.rng = rng
        self.is_long = is_long
        self.sentences = []
        kind, other = rng.sample(KINDS, 2)
        hero = rng.choice([person for person in PEOPLE if fits(person, kind)])
        friend = rng.choice([person for person in PEOPLE if fits(person, other) and person != hero])
        adjective = self.pick(ADJECTIVES)
        self.words = {
            "name": hero.name, "he": hero.he, "him": hero.him, "his": hero.his,
            "He": hero.he.capitalize(), "His": hero.his.capitalize(),
            "kind": kind.noun, "home": kind.home, "food": kind.food, "moved": kind.moves,
            "adj": adjective, "a_kind": with_article(f"{adjective} {kind.noun}"),
            "pal": friend.name, "pal_he": friend.he, "pal_him": friend.him, "pal_his": friend.his,
            "a_pal": f"{with_article(other.noun)} named {friend.name}",
            "pal_kind": other.noun, "pal_food": other.food,
            "place": self.pick(PLACES), "sky": self.pick(SKIES), "time": self.pick(TIMES),
            "gift": self.pick(GIFTS), "lesson": self.pick(LESSONS),
        }

    def pick(self, options):
        # Earlier options are more likely. With equal chances the model would have near-ties, and greedy decoding would
        # depend on an implementation's rounding.
        return self.rng.choices(options, [1 / (i + 1.5) for i in range(len(options))])[0]

    def choose(self, names, rows):
        """Picks a row and makes its fields words; fields may themselves use words."""
        row = self.rng.choice(rows)
        for name, field in zip(names.split(), row, strict=True):
            self.words[name] = field.format_map(self.words)

    def say(self, *variants):
        text = self.pick(variants).format_map(self.words)
        self.sentences.append(text[0].upper() + text[1:])

    def more(self, *variants):
        """Adds a sentence only to a long story."""
        if self.is_long:
            self.say(*variants)

    def story(self):
        return " ".join(self.sentences) + " The end."


def open_story(t):
    t.say(
        "Once upon a time, there was {a_kind} named {name}.",
        "Once upon a time, {a_kind} named {name} lived in {home}.",
        "The {adj} {kind} was called {name}.",
        "Once there was {a_kind} who lived in {home}. {His} name was {name}.",
        "{name} was {a_kind} who lived in {home}.",
        "In {home} lived {a_kind} named {name}.",
        "Long ago, there lived {a_kind} named {name}.",
    )
    t.more(
        "{name} loved {food} more than anything else.",
        "Every morning {name} ate {food} and sang a song.",
        "{name} lived happily, but {he} often felt a little lonely.",
        "Everyone in {place} knew {name} and liked {him} very much.",
        "{name} had bright eyes and a big heart.",
    )


def one_day(t):
    t.say(
        "One {time}, {name} went for a walk in {place}.",
        "One {sky} {time}, {name} {moved} to {place}.",
        "One {time}, the sun was shining on {place}.",
    )


def close_alone(t):
    t.say(
        "{name} was very happy.",
        "{name} smiled all the way home.",
        "That night, {name} slept very well.",
        "And {name} never forgot that day.",
        "{name} learned that {lesson}.",
    )


def close_together(t):
    t.say(
        "From that day on, they were the best of friends.",
        "{name} was very happy.",
        "They laughed until the moon came up.",
        "{name} and {pal} were friends for ever.",
        "{name} learned that {lesson}.",
    )


def tell_quest(t):
    suitable = [row[:-1] for row in QUESTS if t.words["kind"] not in row[-1].split()]
    t.choose("thing where block helper help", suitable)
    open_story(t)
    t.say("{name} wanted {thing} {where}.", "{He} wished for {thing} {where}.",
          "One {time}, {name} saw {thing} {where}.")
    t.more("\"I will go and get it,\" said {name}.", "\"How I would love to have it!\" said {name}.")
    t.say("But {block}.", "{He} tried and tried, but {block}.")
    t.more("{name} sat down on a stone and sighed.", "{name} almost began to cry.")
    t.more("\"Why are you so sad?\" asked a {helper}.", "Then a {helper} came by. \"What is wrong?\" it asked.")
    t.more("\"I want {thing} {where},\" said {name}, \"but I cannot get it.\"")
    t.say("A friendly {helper} {help}.", "Then a {helper} came and {help}.", "So the {helper} {help}.")
    t.say("\"Thank you!\" said {name}.", "\"Thank you, dear {helper},\" said {name}.",
          "\"You are so kind,\" said {name}.")
    t.more("{name} gave the {helper} {gift}.", "They shared some {food} and talked until the evening.")
    close_alone(t)


def tell_lost(t):
    t.choose("thing where", LOST_THINGS)
    open_story(t)
    t.say("One {time}, {name} lost {his} {thing}.", "{He} had a {thing}, but one {time} it was gone.")
    t.more("\"Oh no, where is my {thing}?\" cried {name}.", "{name} looked left and right, but it was not there.")
    t.more("{He} looked in the kitchen. {He} looked in the garden. The {thing} was not there.",
           "{He} asked the cow and the hen, but nobody had seen it.")
    t.say("{name} asked {a_pal} for help.", "\"I will help you,\" said {a_pal}.",
          "{His} friend {pal} came to help.")
    t.more("They looked high and they looked low.", "{pal} and {name} looked everywhere.")
    t.say("They found the {thing} {where}.", "At last {pal} found it {where}.",
          "And there it was, {where}!")
    t.more("\"Here is your {thing}!\" said {pal}.", "\"Hooray!\" shouted {name}. \"My {thing} is back!\"")
    close_together(t)


def tell_share(t):
    open_story(t)
    t.say("{name} had a basket full of {food}.", "One {time}, {name} found some {food} in {place}.",
          "{He} was going to eat {his} {food}.")
    t.say("{He} met {a_pal}. \"I am so hungry,\" said {pal}.",
          "Then {a_pal} came by, who was very hungry.")
    t.more("{name} looked at the {food}. There was not very much.", "{name} thought about it for a while.")
    t.say("\"Let us share,\" said {name}.", "So {name} gave {pal} half of the {food}.",
          "\"Take some of mine,\" said {name}.")
    t.more("They sat down in the grass and ate together.", "It tasted much better together.")
    t.more("The next day, {pal} came back with {gift}.", "{pal} gave {name} {gift} to say thank you.")
    t.more("\"This is for you, because you were kind to me,\" said {pal}.")
    close_together(t)


def tell_fear(t):
    t.choose("fear comfort brave", FEARS)
    open_story(t)
    t.say("{name} was afraid of {fear}.", "But {he} was very much afraid of {fear}.")
    t.more("{He} hid behind a tree and shook from head to toe.", "\"I cannot do it,\" {he} said.")
    t.more("{His} friend {pal} the {pal_kind} sat down beside {him}.")
    t.say("\"{comfort},\" said {pal}.", "\"Do not be afraid. {comfort},\" said {pal} the {pal_kind}.")
    t.say("So {name} {brave}.", "Then {name} took a deep breath and {brave}.")
    t.more("\"You see?\" said {pal}. \"You are braver than you think.\"", "\"I did it!\" cried {name}.")
    t.say("{name} was not afraid any more.", "After that, {he} was not afraid of {fear} any more.")
    t.more("From that day on, {name} helped others who were afraid.",
           "That evening, they told the story to everyone in {place}.")


def tell_garden(t):
    t.choose("seed plant deed", SEEDS)
    open_story(t)
    t.say("{name} found {seed} and put it into the ground.", "One {time}, {name} planted {seed}.")
    t.say("Every day {he} gave it water.", "{He} watered it and waited.")
    t.more("\"Nothing will grow there,\" said {pal} the {pal_kind}.", "Days went by, and nothing happened.")
    t.more("But {name} did not give up. {He} sang to the ground every evening.",
           "The rain fell and the sun shone, and {name} waited.")
    t.say("Soon {plant} grew, and it {deed}.", "At last {plant} came up. It {deed}.")
    t.more("\"How beautiful!\" said {pal}.", "All the animals came to see it.")
    t.more("\"Good things need time,\" said {name}.", "\"It only needed some love,\" said {name}.")
    close_alone(t)


def tell_work(t):
    t.choose("work stuff mishap joy", WORKS)
    open_story(t)
    t.say("One {sky} {time}, {name} made {work} of {stuff}.", "{name} wanted to build {work} of {stuff}.")
    t.say("But {mishap}.", "Soon {mishap}.")
    t.more("\"Oh dear,\" said {name}, \"now I must start again.\"", "{name} was sad, but {he} did not give up.")
    t.say("\"Let me help you,\" said {pal} the {pal_kind}.", "{pal} the {pal_kind} came to help {him}.")
    t.more("They worked all day long and ate {pal_food} for lunch.", "This time they built it strong and well.")
    t.say("Together they {joy}.", "They tried again, and then they {joy}.")
    t.more("\"It is even better than before,\" said {name}.", "\"We are a good team,\" said {pal}.")
    close_together(t)


def tell_young_one(t):
    t.choose("baby mother", YOUNG_ONES)
    open_story(t)
    t.say("One {time}, {he} found {baby} in {place}.", "One {sky} {time}, {name} heard {baby} crying.")
    t.say("\"I have lost my mother,\" it said.", "\"I want to go home,\" it cried.")
    t.more("\"Do not cry,\" said {name}. \"We will find her.\"", "{name} gave it some {food} and wiped its tears.")
    t.more("They walked past the mill and over the bridge.", "They asked everyone they met on the way.")
    t.say("{name} took it home to {mother}.", "So they walked together until they found {mother}.")
    t.say("\"Thank you for bringing my baby home,\" said {mother}.", "{mother} was so glad that she cried.")
    t.more("{mother} gave {name} {gift}.", "They all had supper together.")
    t.more("When {name} came home, the moon was high in the sky.", "{name} went home with a warm heart.")


def tell_quarrel(t):
    t.words["toy"] = t.pick(TOYS)
    open_story(t)
    t.say("{name} and {pal} both wanted {toy}.", "One {time}, {name} and {pal} had a fight about {toy}.")
    t.more("\"It is mine!\" said {name}. \"No, it is mine!\" said {pal}.", "They pulled and pulled, and nobody let go.")
    t.say("{pal} went home and cried.", "They did not talk for a whole day.")
    t.more("{name} sat alone with {toy}. It was no fun at all.", "That night, {name} could not sleep.")
    t.say("\"I am sorry,\" said {name}.", "\"I am sorry,\" {he} said. \"Let us play together.\"")
    t.more("\"I am sorry too,\" said {pal}, and {pal_he} smiled.", "{pal} gave {him} a big hug.")
    t.more("First {name} had a turn, and then {pal} had a turn.", "They took turns until it was dark.")
    t.say("Then they were friends again.", "They played together until the sun went down.")


def tell_rain(t):
    first, second, third = t.rng.sample([v for v in VISITORS if t.words["kind"] not in v], 3)
    t.words.update(first=first, second=second, third=third, the_first="the " + first.split()[1])
    open_story(t)
    t.say("One {time}, it began to rain.", "One {time}, it rained and rained.")
    t.say("{name} sat under a big mushroom.", "{He} hid in an old wooden hut.", "{name} had a big umbrella.")
    t.say("Then {first} came by, all wet. \"May I come in?\" it asked.", "\"May I come in?\" asked {first}.")
    t.say("\"Of course,\" said {name}.", "\"There is room for everyone,\" said {name}.")
    t.more("Then {second} came along. \"Come in, come in,\" said {name}.")
    t.more("After that {third} knocked. They moved closer and made some room.")
    t.more("They were so close together that nobody was cold.", "They told each other stories until the rain stopped.")
    t.say("When the sun came out, they saw a rainbow.", "They sang until the rain was over.",
          "Soon the sun came out again.")
    t.more("\"Look, how beautiful!\" said {the_first}.", "\"Let us meet again when it rains,\" said {name}.")


def tell_star(t):
    open_story(t)
    t.say("One night, {name} saw a falling star.", "Every night, {name} looked up at the stars.")
    t.say("\"I wish for a friend,\" {he} said.", "\"I wish I had a friend,\" {he} whispered.")
    t.more("The star blinked once, as if it had heard {him}.", "Then {he} went to bed and dreamed of the sky.")
    t.say("The next day, {he} met {a_pal}.", "In the morning, {a_pal} came to {place}.")
    t.more("\"I am new here,\" said {pal}. \"Will you play with me?\"",
           "\"Hello,\" said {pal}. \"I have nobody to play with.\"")
    t.say("They played all day long.", "They played together until the stars came out.")
    t.more("That night they looked up together and said thank you to the star.")
    close_together(t)


def tell_race(t):
    open_story(t)
    t.say("One {time}, there was a big race in {place}.", "{name} wanted to win the big race.")
    t.more("All the animals came to watch. \"Ready, steady, go!\" called the owl.",
           "{name} {moved} as fast as {he} could.")
    t.say("{name} was first, but then {pal} fell down.", "On the way, {pal} fell and hurt {pal_his} foot.")
    t.more("\"Go on and win,\" said {pal}. \"Do not wait for me.\"", "The others ran past and did not look back.")
    t.say("{name} stopped and helped {pal_him} up.", "So {name} went back and helped {pal_him}.")
    t.more("\"A friend is more important than a prize,\" said {name}.", "Arm in arm they walked on, step by step.")
    t.say("They came in last, but everybody cheered.", "They crossed the line together, hand in hand.")
    t.more("The owl gave them both {gift}.", "There was cake for everyone.")
    close_together(t)


def tell_birthday(t):
    open_story(t)
    t.say("It was {his} birthday, but nobody said a word.", "On {his} birthday, nobody was at home.")
    t.more("{He} went to see {pal}, but {pal} was not there.", "\"Have they all forgotten me?\" thought {name}.")
    t.say("{name} felt sad and went to {place}.", "{name} was sad and walked home alone.")
    t.more("It was very quiet. Then {he} saw a light behind the trees.", "Then {he} heard somebody giggle.")
    t.say("\"Surprise!\" cried all {his} friends.", "\"Surprise!\" shouted {pal} and all the others.")
    t.more("There was a cake with {food} and a candle on top.", "There were lamps in the trees and music too.")
    t.more("{pal} gave {name} {gift}.", "\"Make a wish,\" said {pal}, and {name} blew out the candle.")
    t.say("It was the best birthday ever.", "They danced and ate cake until midnight.")


def tell_walk(t):
    open_story(t)
    one_day(t)
    t.say("There {he} met {a_pal}.", "There {name} saw {a_pal}, who sat all alone.")
    t.say("\"Will you play with me?\" asked {name}.", "\"Hello, I am {name}. Who are you?\" {he} said.")
    t.more("\"I am {pal},\" said the {pal_kind}. \"I would love to play.\"", "\"Yes, please!\" said {pal}.")
    t.more("They climbed the hill and rolled down again.", "They picked flowers and looked at the clouds.")
    t.more("When they were tired, they ate {pal_food} under a tree.", "{name} showed {pal} {his} favourite tree.")
    t.say("They played hide and seek all day.", "They played until the sun went down.")
    close_together(t)


PLOTS = [tell_quest, tell_lost, tell_share, tell_fear, tell_garden, tell_work, tell_young_one,
         tell_quarrel, tell_rain, tell_star, tell_race, tell_birthday, tell_walk]

# Written by hand, so that the model also sees plots that the grammar does not have.
HAND_WRITTEN = [
    "Once upon a time, there was a lantern who was afraid of the dark. Every evening, when the old man lit "
    "it, the lantern closed its eyes. \"Why do you close your eyes?\" asked a moth. \"Because it is so dark,\" "
    "said the lantern. The moth laughed softly. \"Open them just once,\" it said. So the lantern opened its "
    "eyes, and all around it there was light. \"Where did the dark go?\" asked the lantern. \"It goes away "
    "wherever you look,\" said the moth. The end.",
    "Long ago, there lived a baker who baked one loaf too many every day. \"Why do you do that?\" asked his "
    "wife. \"You will see,\" said the baker. Each evening he put the loaf on the window sill, and each morning "
    "it was gone. One winter, the snow was so deep that nobody could get wood. The baker's fire was almost out. "
    "Then somebody knocked. It was a woodcutter with a sledge full of wood. \"For a whole year your bread fed "
    "my children,\" he said. \"Now I will keep your oven warm.\" The end.",
    "The little cloud did not want to rain. \"If I rain, I will be gone,\" it said. So it floated over the "
    "fields and held its breath. Below, the flowers hung their heads. \"Please, little cloud,\" said a daisy, "
    "\"we are so thirsty.\" The cloud was small, but its heart was not. It let go of one drop, and then another, "
    "and then of all of them. The river carried the drops to the sea, the sun picked them up, and the next "
    "morning the little cloud was back in the sky. The end.",
    "Once upon a time, a snail set out to see the sea. \"It is too far for you,\" said the hare. \"It is too far "
    "for today,\" said the snail, and went on. It passed the mill in spring and the village in summer. In autumn "
    "it slept under a leaf. One bright morning it climbed the last small hill, and there was the sea, as wide as "
    "the sky. \"How did you get here?\" asked a gull. \"I did not stop,\" said the snail. The end.",
    "Nora had a grandmother who knew a story for every button in her box. The blue one was from a sailor's coat. "
    "The green one had been to a ball. \"And this one?\" asked Nora. She held up a small white button. \"That "
    "one has no story yet,\" said her grandmother, and she sewed it onto Nora's jacket. \"Go out and bring me "
    "one.\" So Nora ran out into the meadow, and when she came home in the evening, she had a story to tell. "
    "The end.",
    "Once there was a bell that had lost its voice. The people of the village shook it and polished it, but it "
    "did not ring. \"It is broken,\" they said. Only a boy named Tom climbed up the tower to look. Inside the "
    "bell, a swallow had built a nest. \"Please do not ring,\" said the swallow, \"my children are asleep.\" So "
    "Tom told the people to wait. In the summer the young birds flew away, and the bell rang so loudly that "
    "they heard it and came back. The end.",
    "In a quiet cave in the woods lived a bear who could not sleep. The others had been asleep since the first "
    "snow. The bear counted sheep, but the sheep were noisy. He counted stars, but there were too many. Then a "
    "mouse came in out of the cold. \"May I stay?\" she asked. The bear made room for her in the leaves. The "
    "mouse was so small and so warm, and her breath was so soft, that the bear began to listen to it. He did "
    "not hear it for long. The end.",
    "The moon once came down to look at its face in the pond. \"How pale I am,\" it said. \"You are not pale,\" "
    "said the frog, \"you are silver.\" \"How small I am,\" said the moon. \"You are not small,\" said the frog, "
    "\"you are far away.\" The moon thought about it for a while. \"You are kind, little frog,\" it said. And "
    "since that night, when the frogs sing, the moon comes to the pond to listen. The end.",
]


def generate_stories(rng):
    """Distinct stories in a random order, TARGET_BYTES in total."""
    stories = list(HAND_WRITTEN)
    seen = set(stories)
    size = sum(len(story) + 1 for story in stories)
    while size < TARGET_BYTES:
        teller = Teller(rng, is_long=rng.random() >= SHORT_SHARE)
        rng.choice(PLOTS)(teller)
        story = teller.story()
        if story in seen or (not teller.is_long and len(story) > SHORT_LIMIT):
            continue
        seen.add(story)
        stories.append(story)
        size += len(story) + 1
    rng.shuffle(stories)
    return stories


def main():
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "corpus.txt"
    stories = generate_stories(random.Random(SEED))
    output.write_text("".join(story + "\n" for story in stories), encoding="ascii")
    short = sum(len(story) <= SHORT_LIMIT for story in stories)
    print(f"{output}: {len(stories)} stories, {short} of at most {SHORT_LIMIT} bytes, {output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
