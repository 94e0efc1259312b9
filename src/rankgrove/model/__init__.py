"""Models as flat, frozen arrays: trees and what is made of them."""
